/** A second kube-apiserver on the etcd of a cluster of kwok: what its clients see is old when it has been stopped for a while. */
import type { Cluster } from './cluster.ts';
import { Daemon } from './daemon.ts';
import { freePorts } from './free-ports.ts';
import { KubeApi } from './kube-api.ts';
import type { LabSpec } from './spec.ts';

const READY_TIMEOUT_MS = 120_000;

export interface SecondApiServer {
  /** https://ADDRESS:PORT, with the certificate of the first one. */
  readonly server: string;
  /** Calls as system:masters; to be closed. */
  readonly api: KubeApi;
  /** To stop it, and to end it; it ends with the lab at the latest. */
  readonly daemon: Daemon;
}

/** Resolves when it is ready. It leaves the `kubernetes` Service to the first one. */
export async function startSecondApiServer(lab: LabSpec, cluster: Cluster): Promise<SecondApiServer> {
  const [port = 0] = await freePorts(1);
  const { name, logFile, command, env } = cluster.daemon('kube-apiserver').spec;
  const daemon = Daemon.start(
    {
      name: `${name}-2`,
      // The last value of a flag wins.
      command: [...command, `--secure-port=${port}`, '--endpoint-reconciler-type=none'],
      logFile: logFile.replace(/\.log$/u, '-2.log'),
      env,
    },
    { runDirectory: lab.runDirectory, starting: () => undefined, started: () => undefined },
  );
  const server = `https://${new URL(cluster.server).hostname}:${port}`;
  const { authority, admin: client } = cluster.pki;
  const api = new KubeApi({ server, caCert: authority.cert, client });
  try {
    await daemon.waitFor('/readyz', async () => api.isReady(), { timeoutMs: READY_TIMEOUT_MS });
  } catch (error) {
    api.close();
    await daemon.kill();
    throw error;
  }
  return { server, api, daemon };
}
