import { parse } from 'yaml';

const FIRST = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/u;

/** The certificate in one key of a Secret's data: PEM, or the client certificate of a kubeconfig. Nothing else leaves this function. */
export function certificateIn(data: Readonly<Record<string, string>>, key: string): string | undefined {
  const text = Buffer.from(data[key] ?? '', 'base64').toString();
  return FIRST.exec(text)?.[0] ?? clientCertificate(text);
}

function clientCertificate(kubeconfig: string): string | undefined {
  try {
    const { users } = parse(kubeconfig) as { users?: { user?: { 'client-certificate-data'?: string } }[] };
    const encoded = users?.[0]?.user?.['client-certificate-data'];
    return encoded === undefined ? undefined : FIRST.exec(Buffer.from(encoded, 'base64').toString())?.[0];
  } catch {
    return undefined;
  }
}
