import type { Pod } from '../api/wire.ts';
import { LABEL_HOME_UID } from '../api/names.ts';
import type { SpareConnection } from '../kube/spare-connection.ts';
import { dialUpgrade } from '../kube/upgrade.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Clock } from '../lib/clock.ts';
import { isResult, keptLogOf } from '../provider/forge/made-anew.ts';
import type { Provider } from '../provider/provider.ts';
import type { KubeletBackend } from '../server/kubelet/backend.ts';

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
    locate: (namespace, name, container) => {
      const pod = provider.homePods.get(`${namespace}/${name}`);
      const tenant = provider.tenants.of(namespace);
      const remote = tenant?.remotePod(name);
      if (pod === undefined || tenant === undefined) return undefined;
      // A remote pod of that name that belongs to another home pod must not be entered.
      if (remote?.metadata.labels?.[LABEL_HOME_UID] !== pod.metadata.uid) return undefined;
      if (container !== undefined && !containerNames(pod).includes(container)) return undefined;
      const { tenantNamespace } = tenant.mapping;
      return {
        path: `/api/v1/namespaces/${tenantNamespace}/pods/${name}`,
        uid: pod.metadata.uid,
        ...(isResult(remote) && { keptLog: keptLogOf(remote, pod, container) }),
      };
    },
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

function containerNames({ spec }: Pod): string[] {
  return [
    ...(spec?.initContainers ?? []),
    ...(spec?.containers ?? []),
    ...(spec?.ephemeralContainers ?? []),
  ].map(({ name }) => name);
}

const isRunning = ({ status }: Pod): boolean =>
  [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ].some(({ state }) => state?.running !== undefined);
