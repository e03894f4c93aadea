import type * as X509 from '@peculiar/x509';

/** Curve and digest of everything made here: the kubelet's own. */
export const ECDSA_P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/**
 * The X.509 library, loaded when the first certificate is made or read: it costs 5 MB of resident memory, which an
 * agent that is given its certificate as files never pays (docs/decisions/0015-x509-library.md).
 */
export async function loadX509(): Promise<typeof X509.default> {
  // In this order: the library's container asks for metadata as soon as it is loaded.
  await import('reflect-metadata');
  const { default: x509 } = await import('@peculiar/x509');
  return x509;
}
