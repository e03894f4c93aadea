import { isIP } from 'node:net';
import type { Registry } from 'prom-client';
import type { VirtualNode } from '../api/virtual-node.ts';
import { virtualNodes } from '../api/virtual-node.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeClient } from '../kube/client.ts';
import { ClientEventRecorder } from '../kube/events.ts';
import { createClient } from '../kube/http-client.ts';
import { LeaseKeeper } from '../kube/lease-keeper.ts';
import { systemRandom } from '../lib/backoff.ts';
import { errorMessage, hasCode, TributaryError } from '../lib/errors.ts';
import type { Component, Lifecycle } from '../lib/lifecycle.ts';
import { Provider } from '../provider/provider.ts';
import { CertificateFiles } from '../server/certificate-files.ts';
import { apiServerReviews } from '../server/kubelet/reviews.ts';
import { KubeletServer } from '../server/kubelet/server.ts';
import { ServerMetrics } from '../server/metrics.ts';
import { OpsServer } from '../server/ops.ts';
import { ServingCertificate } from '../server/serving-certificate.ts';
import type { KeyPair, Source } from '../lib/source.ts';
import { VERSION } from '../version.ts';
import { authoritiesFromFile, ClientAuthorities } from './client-authorities.ts';
import { homeCredentials } from './home.ts';
import { kubeletBackend } from './kubelet-backend.ts';
import type { Agent, AgentParts } from './parts.ts';
import { controllerMetrics, createRegistry, lifecycleOf, run } from './parts.ts';
import { ForeignUsage } from './usage.ts';

const WAIT_FOR_OBJECT_MS = 2_000;
/** The kubelet's own: 40 s, renewed four times as often. */
const NODE_LEASE_MS = 40_000;

/** Role `peer`: the virtual node of one foreign cluster. */
export async function startPeer(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock } = parts;
  const name = required(config.virtualNode, 'name the VirtualNode to serve: --virtual-node NAME');
  const address = required(
    config.nodeAddress,
    'say where the API server reaches this agent: --node-address or $POD_IP',
  );
  if (isIP(address) === 0) throw new TributaryError('Invalid', `"${address}" is no address: --node-address`);
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('peer');
  const lives: { lifecycle?: Lifecycle } = {};
  const ops = opsServer(parts, registry, lives);
  try {
    await ops.start(signal);
    const virtualNode = await waitForVirtualNode(home, name, parts, signal);
    const { provider, events } = createProvider({ parts, home, virtualNode, address, registry });
    const kubelet = await kubeletComponents({ parts, home, provider, address, registry });
    const lifecycle = lifecycleOf(
      [
        events,
        ...provider.caches(),
        ...kubelet,
        ...provider.actors(),
        readiness(provider),
        nodeLease(parts, home, provider),
      ],
      parts,
    );
    lives.lifecycle = lifecycle;
    const agent = await run(lifecycle, [home], signal);
    return {
      failed: agent.failed,
      stop: async () => {
        await agent.stop();
        await ops.stop();
      },
    };
  } catch (error) {
    await ops.stop();
    throw error;
  }
}

function required(value: string | undefined, message: string): string {
  if (value === undefined || value === '') throw new TributaryError('Invalid', message);
  return value;
}

interface PeerParts {
  parts: AgentParts;
  home: KubeClient;
  address: string;
  registry: Registry;
}

function createProvider({
  parts,
  home,
  virtualNode,
  address,
  registry,
}: PeerParts & { virtualNode: VirtualNode }): {
  provider: Provider;
  events: ClientEventRecorder;
} {
  const { config, clock, log } = parts;
  const events = new ClientEventRecorder({ client: home, clock, log, component: 'tributary' });
  const provider = new Provider({
    virtualNode,
    home,
    events,
    metrics: controllerMetrics(registry),
    nodeAddress: address,
    kubeletPort: config.kubeletPort,
    version: VERSION,
    clock,
    log,
  });
  return { provider, events };
}

/** The kubelet API and what it stands on: its certificate, and whose client certificates it believes. */
async function kubeletComponents(given: PeerParts & { provider: Provider }): Promise<Component[]> {
  const { parts, home, provider, registry } = given;
  const { config, clock, log } = parts;
  const certificate = servingCertificate(given);
  const authorities = new ClientAuthorities({ home, clock, log });
  const fromFile =
    config.clientCaFile === undefined ? undefined : await authoritiesFromFile(config.clientCaFile);
  const usage = new ForeignUsage(provider, clock, log.named('usage'));
  const kubelet = new KubeletServer({
    nodeName: provider.nodeName,
    port: config.kubeletPort,
    backend: kubeletBackend(provider, clock, {
      statsSummary: async () => usage.summary(),
      metricsResource: async () => usage.exposition(),
      metrics: async () => registry.metrics(),
    }),
    reviews: apiServerReviews(home),
    servingCertificate: certificate,
    clientAuthorities: fromFile ?? authorities.source,
    clock,
    log: log.named('kubelet'),
    metrics: new ServerMetrics(registry),
  });
  return [certificate, ...(fromFile === undefined ? [authorities] : []), kubelet];
}

function servingCertificate({
  parts,
  home,
  provider,
  address,
}: PeerParts & { provider: Provider }): Component & Source<KeyPair> {
  const { config, clock, log } = parts;
  const { tlsCertFile, tlsPrivateKeyFile } = config;
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined) {
    return new CertificateFiles({ certificatePath: tlsCertFile, keyPath: tlsPrivateKeyFile, clock, log });
  }
  return new ServingCertificate({
    client: home,
    clock,
    log: log.named('serving-certificate'),
    random: systemRandom,
    nodeName: provider.nodeName,
    addresses: () => ({ dnsNames: [], ips: [address] }),
  });
}

/** Last: the Node turns Ready only when everything before has started. */
const readiness = (provider: Provider): Component => ({
  name: 'ready',
  start: async () => Promise.resolve(provider.setListening(true)),
  stop: async () => provider.markStopped(),
});

const nodeLease = ({ clock, log }: AgentParts, home: KubeClient, provider: Provider): Component =>
  new LeaseKeeper({
    client: home,
    clock,
    log,
    namespace: 'kube-node-lease',
    name: provider.nodeName,
    identity: provider.nodeName,
    durationMs: NODE_LEASE_MS,
  });

function opsServer(
  { config, log }: { config: AgentConfig; log: AgentParts['log'] },
  registry: Registry,
  lives: { lifecycle?: Lifecycle },
): OpsServer {
  const starting = (): string | undefined =>
    lives.lifecycle === undefined ? 'waiting for the VirtualNode' : lives.lifecycle.starting;
  return new OpsServer({
    port: config.opsPort,
    registry,
    // A foreign cluster that is away is no reason to restart this process, nor to call it unready.
    live: [],
    ready: [
      {
        name: 'started',
        check: () => {
          const component = starting();
          return component === undefined ? undefined : `starting: ${component}`;
        },
      },
    ],
    components: () => ({ order: lives.lifecycle?.order ?? [], starting: starting() }),
    log: log.named('ops'),
  });
}

/** The VirtualNode may be made after its agent; until then there is nothing to do but to say so. */
async function waitForVirtualNode(
  home: KubeClient,
  name: string,
  { clock, log }: AgentParts,
  signal: AbortSignal,
): Promise<VirtualNode> {
  for (let said = ''; ;) {
    try {
      return await home.get(virtualNodes, { name }, { signal });
    } catch (error) {
      if (hasCode(error, 'Aborted')) throw error;
      const why = errorMessage(error);
      if (why !== said) log.warn('waiting for the VirtualNode', { virtualNode: name, error: why });
      said = why;
      await clock.sleep(WAIT_FOR_OBJECT_MS, signal);
    }
  }
}
