import { DEFAULTED_RESOURCES } from '../../api/default-requests.ts';
import type { Container, PodSpec } from '../../api/wire.ts';

type Containers = Pick<PodSpec, 'containers' | 'initContainers'>;

/** Whether it names an amount. An API server gives a container that has a limit and no request a request of that amount. */
export const asks = ({ resources }: Pick<Container, 'resources'>, name: string): boolean =>
  resources?.requests?.[name] !== undefined || resources?.limits?.[name] !== undefined;

/**
 * A LimitRange over there gives requests to each container that names none, which home does not count. A pod that requests
 * some of a resource is to cost there what it costs here, and a pod that requests none of it the default once, and not once
 * for each container: so all others say that they request nothing. The first one is left to the provider's default.
 */
export function withRequests(home: PodSpec, { containers, initContainers }: Containers): Containers {
  const all = [...home.containers, ...(home.initContainers ?? [])];
  const isAsked = (name: string): boolean =>
    asks(home, name) || all.some((container) => asks(container, name));
  const asked = DEFAULTED_RESOURCES.filter(isAsked);
  const say = (container: Container, names: readonly string[]): Container => {
    const missing = names.filter((name) => !asks(container, name));
    if (missing.length === 0) return container;
    const nothing = Object.fromEntries(missing.map((name) => [name, '0']));
    const { resources } = container;
    return { ...container, resources: { ...resources, requests: { ...resources?.requests, ...nothing } } };
  };
  return {
    containers: containers.map((container, index) =>
      say(container, index === 0 ? asked : DEFAULTED_RESOURCES),
    ),
    ...(initContainers && { initContainers: initContainers.map((one) => say(one, DEFAULTED_RESOURCES)) }),
  };
}
