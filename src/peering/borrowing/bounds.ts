import type { Clock } from '../../lib/clock.ts';
import type { ProxySettings } from '../../lib/proxy.ts';
import type { AccessOptions } from './access.ts';
import { isOurPlace, literalAddresses, type OurPlaces, type Resolve } from './our-places.ts';
import { probe, resolveAll } from './probe.ts';

interface BoundsOptions {
  ours: () => OurPlaces;
  allowLoopback: boolean;
  clock: Clock;
  proxies?: ProxySettings | undefined;
  resolve?: Resolve | undefined;
}

/** Where providers may lead our agents, as it is each time somebody asks. */
export function accessBounds(options: BoundsOptions): Pick<AccessOptions, 'probe' | 'isOurs' | 'ourCa'> {
  const { ours, allowLoopback, clock, proxies, resolve = resolveAll } = options;
  return {
    probe: async (api, signal) =>
      probe(api, { ours: ours(), allowLoopback, clock, proxies, resolve }, signal),
    isOurs: (at) => isOurPlace(at, literalAddresses(ours(), allowLoopback)),
    ourCa: () => ours().ca,
  };
}
