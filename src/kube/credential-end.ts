import { X509Certificate } from 'node:crypto';

import type { Credentials } from './credentials.ts';

/** When a client certificate, or a token that is a JWT, ends, in milliseconds since 1970; undefined: it does not say. Nothing is verified. */
export async function credentialEnd({
  clientCert,
  token,
}: Pick<Credentials, 'clientCert' | 'token'>): Promise<number | undefined> {
  if (clientCert !== undefined) return Date.parse(new X509Certificate(clientCert.cert).validTo);
  const [, claims = ''] = ((await token?.()) ?? '').split('.');
  try {
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as { exp?: unknown };
    return typeof exp === 'number' ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}
