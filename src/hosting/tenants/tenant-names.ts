import { createHash } from 'node:crypto';

import { MAX_LABEL_LENGTH } from '../../api/manifest.ts';
import type { NamespaceOffer, WithheldNamespace } from '../../api/offer.ts';
import type { NamespaceNaming } from '../../api/sharing-policy.ts';
import { isOpenName, isReservedNamespace } from './reserved-names.ts';

/** How many characters of the consumer's ID a name ends with; more only where the shorter name is taken. */
const ID_LENGTHS = [8, 13, 26] as const;
const HASH_LENGTH = 6;
const OWN_PREFIX = 'peer-';

export interface TenantNames {
  namespaces: NamespaceOffer[];
  /** Home namespaces that ask for no certain name, and for which no free one was found. */
  taken: string[];
  /** All home namespaces that get none, and why. */
  withheld: WithheldNamespace[];
}

/** An existing tenant namespace of this peer, whatever the contract says. */
export interface TenantPlace extends NamespaceOffer {
  /** It is being deleted, and no contract keeps it. */
  ending: boolean;
}

interface TenantNaming {
  consumer: string;
  /** The names that were chosen before. */
  before: readonly NamespaceOffer[];
  /** Home namespaces that must have a certain name, or get no tenant namespace. */
  asked?: readonly NamespaceOffer[];
  /** Default Suffixed. */
  naming?: NamespaceNaming | undefined;
  /** Names, and patterns with `*`, that it may take besides those that end with its ID. */
  open?: readonly string[];
  /** Whether a namespace of that name exists and is not this peer's. */
  isTaken: (name: string) => boolean;
  /** Whether another peer was promised that name. */
  isPromised?: (name: string) => boolean;
  places?: readonly TenantPlace[];
}

/**
 * A tenant namespace for each home namespace. One that asks for a name gets that, where the policy allows it and it is free, or
 * none. The others get the name of the home namespace, where the policy allows that, else `<home>-<first 8 of the consumer's
 * ID>`. What was chosen before stays. A name that somebody else's namespace has is not used. Deterministic.
 */
export function chooseTenantNames(homeNamespaces: readonly string[], options: TenantNaming): TenantNames {
  const homes = [...new Set(homeNamespaces)];
  const asked = new Map(options.asked?.map((one) => [one.homeNamespace, one.tenantNamespace]));
  const choice = new Choice(options);
  // Those that ask for a certain name go first: the others can have any name.
  for (const home of homes) {
    const name = asked.get(home);
    if (name !== undefined) choice.insist(home, name);
  }
  for (const home of homes) if (!asked.has(home)) choice.choose(home);
  return choice.inOrder(homes);
}

type Withheld = Omit<WithheldNamespace, 'homeNamespace'>;

class Choice {
  readonly #options: TenantNaming;
  readonly #known: ReadonlyMap<string, string>;
  readonly #chosen = new Map<string, string>();
  readonly #withheld = new Map<string, Withheld>();
  readonly #taken = new Set<string>();

  constructor(options: TenantNaming) {
    this.#options = options;
    this.#known = new Map(options.before.map((one) => [one.homeNamespace, one.tenantNamespace]));
  }

  insist(home: string, name: string): void {
    const refusal = this.#objection(home, name);
    if (refusal === undefined) this.#chosen.set(home, name);
    else this.#withheld.set(home, refusal);
  }

  choose(home: string): void {
    const { consumer, naming } = this.#options;
    const candidates = [
      this.#known.get(home) ?? [],
      naming === 'SameIfFree' && this.#mayTake(home) ? home : [],
      candidatesOf(home, consumer),
    ].flat();
    const name = candidates.find((one) => !isReservedNamespace(one) && this.#isFree(home, one));
    if (name === undefined) {
      this.#taken.add(home);
      this.#withheld.set(home, { reason: 'NameTaken', message: 'other namespaces bear all names for it' });
    } else if (this.#isEnding(name)) this.#withheld.set(home, ending(name));
    else this.#chosen.set(home, name);
  }

  inOrder(homes: readonly string[]): TenantNames {
    return {
      namespaces: homes.flatMap((homeNamespace) => {
        const tenantNamespace = this.#chosen.get(homeNamespace);
        return tenantNamespace === undefined ? [] : [{ homeNamespace, tenantNamespace }];
      }),
      taken: homes.filter((home) => this.#taken.has(home)),
      withheld: homes.flatMap((homeNamespace) => {
        const refusal = this.#withheld.get(homeNamespace);
        return refusal === undefined ? [] : [{ homeNamespace, ...refusal }];
      }),
    };
  }

  #objection(home: string, name: string): Withheld | undefined {
    const known = this.#known.get(home);
    if (this.#options.naming !== 'SameIfFree' && known !== name) {
      return { reason: 'NamingNotAllowed', message: 'the SharingPolicy chooses the names of tenants itself' };
    }
    if (isReservedNamespace(name)) {
      return { reason: 'NamingNotAllowed', message: `${name} is a name that no tenant is given` };
    }
    if (known !== name && !this.#mayTake(name)) {
      return {
        reason: 'NamingNotAllowed',
        message: `the SharingPolicy does not open the name ${name}: namespaceNames names those that peers may take`,
      };
    }
    const old = this.#placeOf(home, name);
    if (old !== undefined) {
      return { reason: 'NameTaken', message: `it is ${old} here, which has to go first` };
    }
    if (!this.#isFree(home, name))
      return { reason: 'NameTaken', message: `${name} is another namespace here` };
    return this.#isEnding(name) ? ending(name) : undefined;
  }

  /** Whether a peer may choose this name. Those that end with its ID are its own. */
  #mayTake(name: string): boolean {
    const { consumer, open = [] } = this.#options;
    return (
      ID_LENGTHS.some((length) => name.endsWith(`-${consumer.slice(0, length)}`)) || isOpenName(name, open)
    );
  }

  /** The tenant namespace that it has now under another name. */
  #placeOf(home: string, name: string): string | undefined {
    const { places = [] } = this.#options;
    const there = [
      this.#known.get(home) ?? [],
      places.filter((one) => one.homeNamespace === home).map((one) => one.tenantNamespace),
    ];
    return there.flat().find((one) => one !== name);
  }

  /** Two home namespaces of the peer must never share one tenant namespace, now or later. */
  #isFree(home: string, name: string): boolean {
    const { isTaken, isPromised = () => false, places = [] } = this.#options;
    const isOfAnother = ([other, tenant]: [string, string]): boolean => tenant === name && other !== home;
    const isNew = this.#known.get(home) !== name;
    return !(
      isTaken(name) ||
      (isNew && isPromised(name)) ||
      this.#known.entries().some(isOfAnother) ||
      this.#chosen.entries().some(isOfAnother) ||
      // Pods of that home namespace are still in it.
      places.some((one) => one.homeNamespace !== '' && isOfAnother([one.homeNamespace, one.tenantNamespace]))
    );
  }

  #isEnding(name: string): boolean {
    return this.#options.places?.some((one) => one.ending && one.tenantNamespace === name) ?? false;
  }
}

const ending = (name: string): Withheld => ({
  reason: 'NameTaken',
  ending: true,
  message: `${name} of an earlier contract has not ended yet`,
});

/**
 * The hash tells long names apart that begin with the same characters. With the suffix, a name can still begin as those of the
 * cluster's programs do (`openshift-...`): then a word of ours goes before it.
 */
function candidatesOf(homeNamespace: string, consumer: string): string[] {
  return ID_LENGTHS.map((length) => {
    const suffix = consumer.slice(0, length);
    const isReserved = isReservedNamespace(`${homeNamespace}-${suffix}`);
    const name = isReserved ? `${OWN_PREFIX}${homeNamespace}` : homeNamespace;
    const room = MAX_LABEL_LENGTH - suffix.length - 1;
    if (name.length <= room) return `${name}-${suffix}`;
    const hash = createHash('sha256').update(homeNamespace).digest('hex').slice(0, HASH_LENGTH);
    return `${name.slice(0, room - HASH_LENGTH - 1)}-${hash}-${suffix}`;
  });
}
