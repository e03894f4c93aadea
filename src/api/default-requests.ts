import { atMost, formatAmounts, mostOf, parseNamed, roundUp, MILLI } from './amounts.ts';
import type { ResourceList } from './wire.ts';

/** Resources of which a provider's LimitRange gives a request to a container that names none. */
export const DEFAULTED_RESOURCES = ['cpu', 'memory', 'ephemeral-storage'] as const;

/** Requests by resource, of DEFAULTED_RESOURCES only. */
export type DefaultRequests = Partial<Record<(typeof DEFAULTED_RESOURCES)[number], string>>;

/**
 * What a container without requests asks for in a tenant namespace, unless the SharingPolicy says otherwise: nothing, as on a
 * node of its home. A quota needs a number for each container, and zero is one.
 */
const NONE: Readonly<ResourceList> = { cpu: '0', memory: '0', 'ephemeral-storage': '0' };

/** What providers gave it before their offers said so. */
export const UNTOLD_DEFAULT_REQUESTS: Readonly<ResourceList> = {
  cpu: '100m',
  memory: '128Mi',
  'ephemeral-storage': '256Mi',
};

/** Of all DEFAULTED_RESOURCES, as an API server would write it. Throws Invalid for a quantity that cannot be read. */
export function defaultRequestsOf(given: Readonly<DefaultRequests> | undefined): ResourceList {
  const named = DEFAULTED_RESOURCES.map((name) => [name, given?.[name] ?? NONE[name] ?? '0'] as const);
  return offerableAmounts('default requests', Object.fromEntries(named));
}

/** In whole units and within what an offer can bear; rounded up, since it is set aside. Throws Invalid. */
export function offerableAmounts(what: string, list: Readonly<ResourceList>): ResourceList {
  const amounts = parseNamed(what, list);
  return formatAmounts(
    new Map(
      [...amounts].map(([name, milli]) => {
        const whole = name === 'cpu' ? milli : roundUp(milli, MILLI);
        return [name, atMost(whole, mostOf(name))];
      }),
    ),
  );
}
