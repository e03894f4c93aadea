import type { Pod } from '../api/wire.ts';
import type { SpareConnection } from '../kube/spare-connection.ts';
import { dialUpgrade } from '../kube/upgrade.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Provider } from '../provider/provider.ts';
import { containerStatusesOf } from '../provider/usage.ts';
import type { KubeletBackend } from '../server/kubelet/backend.ts';
import { podLocator } from './pod-location.ts';

/** The figures that another part takes from the foreign cluster. */
type KubeletFigures = Pick<KubeletBackend, 'statsSummary' | 'metricsResource' | 'metrics'>;

/** The kubelet API's questions, answered from the provider's caches and the foreign API server. */
export function kubeletBackend(
  provider: Provider,
  clock: Clock,
  spare: SpareConnection,
  figures: KubeletFigures,
): KubeletBackend {
  const pods = (): Pod[] => [...provider.homePods.list()];
  provider.foreign.onChange(() => spare.use(provider.foreign.credentials));
  return {
    ...figures,
    pods,
    runningPods: () => pods().filter(isRunning),
    locate: podLocator(provider, clock),
    raw: async (request) => provider.foreign.client.raw(request),
    upgrade: async (request) => {
      const credentials = provider.foreign.credentials;
      if (credentials === undefined) {
        const why = provider.foreign.problem?.message ?? 'no credential';
        throw new TributaryError('Unreachable', `the foreign cluster cannot be reached: ${why}`);
      }
      return dialUpgrade(credentials, { ...request, clock, spare });
    },
    configz: () => ({
      kubeletconfig: { kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1' },
    }),
    healthz: () => {
      const { ok, message } = provider.contact.state;
      return { ok, message };
    },
  };
}

const isRunning = ({ status }: Pod): boolean =>
  containerStatusesOf(status).some(({ state }) => state?.running !== undefined);
