/** All the keys of one cluster, in files: what its components read, and the authority that tests issue from. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Authority, serviceAccountKeys, type KeyPair } from './pki.ts';

/** Names and addresses of a cluster besides its name in DNS. */
export interface ServingNames {
  /** Addresses of the API server: its node's, and the first one of the service range. */
  readonly ips: readonly string[];
}

export class ClusterPki {
  /** Folder of the files; `file()` gives their paths. */
  readonly directory: string;
  /** Signs clients, kubelets and the API server. */
  readonly authority: Authority;
  /** Member of system:masters. */
  readonly admin: KeyPair;

  private constructor(directory: string, authority: Authority, admin: KeyPair) {
    this.directory = directory;
    this.authority = authority;
    this.admin = admin;
  }

  /** A new authority and all certificates of a control plane, written to `directory`. */
  static async create(directory: string, cluster: string, serving: ServingNames): Promise<ClusterPki> {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const authority = await Authority.create(`${cluster}-ca`);
    const frontProxy = await Authority.create(`${cluster}-front-proxy-ca`);
    const admin = await authority.issue({ commonName: 'admin', organizations: ['system:masters'] });
    const pki = new ClusterPki(directory, authority, admin);

    pki.writePair('ca', authority);
    pki.write('front-proxy-ca.crt', frontProxy.cert);
    pki.writePair('front-proxy-client', await frontProxy.issue({ commonName: 'front-proxy-client' }));
    pki.writePair('admin', admin);
    pki.writePair(
      'apiserver',
      await authority.issue({
        commonName: 'kube-apiserver',
        dns: [
          'kubernetes',
          'kubernetes.default',
          'kubernetes.default.svc',
          'kubernetes.default.svc.cluster.local',
          'localhost',
        ],
        ips: ['127.0.0.1', ...serving.ips],
      }),
    );
    pki.writePair(
      'apiserver-kubelet-client',
      await authority.issue({
        commonName: 'kube-apiserver-kubelet-client',
        organizations: ['system:masters'],
      }),
    );
    const serviceAccount = serviceAccountKeys();
    pki.write('service-account.key', serviceAccount.privateKey);
    pki.write('service-account.pub', serviceAccount.publicKey);
    return pki;
  }

  /** The keys of a cluster that an earlier run made. */
  static async load(directory: string): Promise<ClusterPki> {
    const read = (name: string): KeyPair => ({
      cert: readFileSync(join(directory, `${name}.crt`), 'utf8'),
      key: readFileSync(join(directory, `${name}.key`), 'utf8'),
    });
    return new ClusterPki(directory, await Authority.load(read('ca')), read('admin'));
  }

  /** Path of a file in the folder: `ca.crt`, `apiserver.key`, ... */
  file(name: string): string {
    return join(this.directory, name);
  }

  /** Writes a file that only its owner can read; its path. */
  write(name: string, content: string): string {
    const path = this.file(name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }

  /** Writes `NAME.crt` and `NAME.key`. */
  writePair(name: string, pair: KeyPair): void {
    this.write(`${name}.crt`, pair.cert);
    this.write(`${name}.key`, pair.key);
  }
}
