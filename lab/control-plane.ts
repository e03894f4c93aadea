/**
 * The control plane of one cluster: etcd, kube-apiserver, and after /readyz the controller manager and the
 * scheduler. It knows addresses, ports and files, but not where processes run: `start` puts them into a network
 * namespace (containers) or leaves them where we are (kwok).
 */
import { join } from 'node:path';

import { ClusterPki } from './cluster-pki.ts';
import { type Daemon, type DaemonSpec, FRUGAL } from './daemon.ts';
import { KubeApi } from './kube-api.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { firstAddress } from './network.ts';
import type { ControlPlaneFlags, ControlPlaneProgram } from './spec.ts';

export type { ControlPlaneProgram } from './spec.ts';

export interface ControlPlanePorts {
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
  /** 0: does not listen at all. */
  readonly controllerManager: number;
  /** 0: does not listen at all. */
  readonly scheduler: number;
}

/** What a network namespace of one's own allows. */
export const DEFAULT_PORTS: ControlPlanePorts = {
  etcdClient: 2379,
  etcdPeer: 2380,
  apiServer: 6443,
  controllerManager: 10257,
  scheduler: 10259,
};

export interface ControlPlaneOptions {
  /** Name of the cluster; daemons are called `NAME/kube-apiserver` and so on. */
  readonly name: string;
  /** On a disk: etcd's data, keys and logs go below it. */
  readonly directory: string;
  readonly programs: Readonly<Record<ControlPlaneProgram, string>>;
  /** Address of the API server, for clients and for the `kubernetes` Service. */
  readonly address: string;
  /** Default 0.0.0.0. */
  readonly bindAddress?: string;
  readonly ports: ControlPlanePorts;
  readonly podCidr: string;
  readonly serviceCidr: string;
  /** Starts one daemon where it belongs. */
  readonly start: (spec: DaemonSpec) => Daemon;
  /** Appended to the flags below, by program; the last value of a flag wins. */
  readonly flags?: ControlPlaneFlags;
  readonly progress?: (line: string) => void;
}

const READY_TIMEOUT_MS = 120_000;

/** Kinds that few read: the API server keeps no cache of them, each of which would wake it every second, and asks etcd. */
const UNCACHED_KINDS = [
  'apiservices.apiregistration.k8s.io',
  'certificatesigningrequests.certificates.k8s.io',
  'controllerrevisions.apps',
  'cronjobs.batch',
  'csidrivers.storage.k8s.io',
  'csinodes.storage.k8s.io',
  'csistoragecapacities.storage.k8s.io',
  'deviceclasses.resource.k8s.io',
  'endpoints',
  'flowschemas.flowcontrol.apiserver.k8s.io',
  'horizontalpodautoscalers.autoscaling',
  'ingressclasses.networking.k8s.io',
  'ipaddresses.networking.k8s.io',
  'limitranges',
  'mutatingadmissionpolicies.admissionregistration.k8s.io',
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'podtemplates',
  'priorityclasses.scheduling.k8s.io',
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
  'replicationcontrollers',
  'resourceclaims.resource.k8s.io',
  'resourceclaimtemplates.resource.k8s.io',
  'resourceslices.resource.k8s.io',
  'runtimeclasses.node.k8s.io',
  'servicecidrs.networking.k8s.io',
  'storageclasses.storage.k8s.io',
  'volumeattachments.storage.k8s.io',
  'volumeattributesclasses.storage.k8s.io',
];

/** The running control plane of a cluster. */
export interface ControlPlane {
  readonly pki: ClusterPki;
  /** Calls as system:masters. */
  readonly api: KubeApi;
  /** https://ADDRESS:PORT */
  readonly server: string;
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string;
  readonly daemons: Readonly<Record<ControlPlaneProgram, Daemon>>;
}

/** Brings a control plane up; resolves when the API server is ready and the other two are started. */
export async function startControlPlane(
  options: ControlPlaneOptions,
  signal?: AbortSignal,
): Promise<ControlPlane> {
  const { name, address, ports, progress = () => {} } = options;
  const server = `https://${address}:${ports.apiServer}`;
  const pki = await ClusterPki.create(join(options.directory, 'pki'), name, {
    ips: [address, firstAddress(options.serviceCidr)],
  });
  const kubeconfig = pki.write(
    'admin.kubeconfig',
    renderKubeconfig({ name, server, caCert: pki.authority.cert, client: pki.admin }),
  );
  const start = (program: ControlPlaneProgram, args: readonly string[]): Daemon =>
    options.start({
      name: `${name}/${program}`,
      command: [options.programs[program], ...args, ...(options.flags?.[program] ?? [])],
      logFile: join(options.directory, 'log', `${program}.log`),
      ...FRUGAL,
    });

  const etcd = start('etcd', etcdFlags(options));
  const apiServer = start('kube-apiserver', apiServerFlags(options, pki));
  const api = new KubeApi({ server, caCert: pki.authority.cert, client: pki.admin });
  const isReady = async (): Promise<boolean> => {
    // The API server runs on for 20 s without etcd, and then reports a problem of the connection.
    if (!etcd.id) throw etcd.failure('ended');
    return api.isReady();
  };
  await apiServer.waitFor('/readyz', isReady, { timeoutMs: READY_TIMEOUT_MS, signal });
  progress(`${name}: API server ready at ${server}`);

  // After /readyz, because a controller manager that finds the API server half started ends for good.
  const controllerManager = start('kube-controller-manager', await controllerManagerFlags(options, pki));
  const scheduler = start('kube-scheduler', await schedulerFlags(options, pki));
  return {
    pki,
    api,
    server,
    kubeconfig,
    daemons: {
      etcd,
      'kube-apiserver': apiServer,
      'kube-controller-manager': controllerManager,
      'kube-scheduler': scheduler,
    },
  };
}

function etcdFlags({ name, directory, ports }: ControlPlaneOptions): string[] {
  const client = `http://127.0.0.1:${ports.etcdClient}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--name=${name}`,
    `--data-dir=${join(directory, 'etcd')}`,
    // The data is removed with the lab; it has to survive a killed process, not a power cut.
    '--unsafe-no-fsync',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${name}=${peer}`,
    '--log-level=warn',
    // Ten times a second by default. Nobody waits for a batch, since the log of writes comes before it.
    '--backend-batch-interval=500ms',
  ];
}

function apiServerFlags(options: ControlPlaneOptions, pki: ClusterPki): string[] {
  const issuer = 'https://kubernetes.default.svc.cluster.local';
  return [
    `--etcd-servers=http://127.0.0.1:${options.ports.etcdClient}`,
    `--advertise-address=${options.address}`,
    `--bind-address=${options.bindAddress ?? '0.0.0.0'}`,
    `--secure-port=${options.ports.apiServer}`,
    `--service-cluster-ip-range=${options.serviceCidr}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    `--client-ca-file=${pki.file('ca.crt')}`,
    `--tls-cert-file=${pki.file('apiserver.crt')}`,
    `--tls-private-key-file=${pki.file('apiserver.key')}`,
    `--service-account-key-file=${pki.file('service-account.pub')}`,
    `--service-account-signing-key-file=${pki.file('service-account.key')}`,
    `--service-account-issuer=${issuer}`,
    `--api-audiences=${issuer}`,
    `--kubelet-client-certificate=${pki.file('apiserver-kubelet-client.crt')}`,
    `--kubelet-client-key=${pki.file('apiserver-kubelet-client.key')}`,
    `--kubelet-certificate-authority=${pki.file('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP',
    // Aggregated APIs (metrics-server): the server speaks for its clients with the front proxy's certificate.
    `--requestheader-client-ca-file=${pki.file('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-username-headers=X-Remote-User',
    `--proxy-client-cert-file=${pki.file('front-proxy-client.crt')}`,
    `--proxy-client-key-file=${pki.file('front-proxy-client.key')}`,
    '--enable-aggregator-routing=true',
    '--v=1',
    `--watch-cache-sizes=${UNCACHED_KINDS.map((kind) => `${kind}#0`).join(',')}`,
  ];
}

async function controllerManagerFlags(options: ControlPlaneOptions, pki: ClusterPki): Promise<string[]> {
  return [
    ...(await componentFlags(options, pki, 'controller-manager', 'system:kube-controller-manager')),
    `--secure-port=${options.ports.controllerManager}`,
    `--root-ca-file=${pki.file('ca.crt')}`,
    `--service-account-private-key-file=${pki.file('service-account.key')}`,
    '--use-service-account-credentials=true',
    `--cluster-signing-cert-file=${pki.file('ca.crt')}`,
    `--cluster-signing-key-file=${pki.file('ca.key')}`,
    '--allocate-node-cidrs=true',
    `--cluster-cidr=${options.podCidr}`,
    '--node-cidr-mask-size=24',
    // By default an autoscaler looks every 15 s and ignores pods that are younger than five minutes: too slow for a
    // demo.
    '--horizontal-pod-autoscaler-sync-period=5s',
    '--horizontal-pod-autoscaler-initial-readiness-delay=5s',
    '--horizontal-pod-autoscaler-cpu-initialization-period=10s',
    `--service-cluster-ip-range=${options.serviceCidr}`,
    `--cluster-name=${options.name}`,
  ];
}

async function schedulerFlags(options: ControlPlaneOptions, pki: ClusterPki): Promise<string[]> {
  return [
    ...(await componentFlags(options, pki, 'scheduler', 'system:kube-scheduler')),
    `--secure-port=${options.ports.scheduler}`,
  ];
}

async function componentFlags(
  options: ControlPlaneOptions,
  pki: ClusterPki,
  file: string,
  commonName: string,
): Promise<string[]> {
  const kubeconfig = pki.write(
    `${file}.kubeconfig`,
    renderKubeconfig({
      name: options.name,
      server: `https://${options.address}:${options.ports.apiServer}`,
      caCert: pki.authority.cert,
      client: await pki.authority.issue({ commonName }),
    }),
  );
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    // The controller manager requests a token for each controller; at the default rate of 20 a second it starts 5 s
    // later.
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ];
}
