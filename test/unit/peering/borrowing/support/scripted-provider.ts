import type { Offer, SignedContract } from '../../../../../src/api/offer.ts';
import type { ResourceList } from '../../../../../src/api/wire.ts';
import { canonicalText } from '../../../../../src/lib/canonical-json.ts';
import type { Clock } from '../../../../../src/lib/clock.ts';
import { present } from '../../../../../src/lib/fields.ts';
import { Identity } from '../../../../../src/peering/identity/identity.ts';
import type {
  AcceptanceDocument,
  ApiAccess,
  Credential,
  Documents,
  GrantDocument,
  OfferDocument,
  RequestDocument,
  WithheldNamespace,
} from '../../../../../src/peering/protocol/documents.ts';

const iso = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** The other side, as it lends: it says what its state says, and remembers all over the consumer's kills. */
export class ScriptedProvider {
  readonly identity: Identity = Identity.generate();
  readonly consumer: string;
  readonly #clock: Clock;
  /** What has been said to it last. */
  request: RequestDocument | undefined;
  acceptance: AcceptanceDocument | undefined;
  contract: SignedContract | undefined;
  /** Every request that it has ever got, to find out what was said on the way. */
  readonly requests: (RequestDocument | undefined)[] = [];
  resources: ResourceList = { cpu: '8', memory: '16Gi', pods: '100' };
  /** Undefined: as of a version that does not tell them. */
  defaultRequests: ResourceList | undefined = { cpu: '0', memory: '0', 'ephemeral-storage': '0' };
  lifeMs: number = 3_600_000;
  tokenLifeMs: number = 600_000;
  assessment: 'Automatic' | 'Pending' | 'Denied' | 'Ended' = 'Automatic';
  withdrawn = false;
  /** Whether it answers a signed contract. */
  signs = true;
  withheld: WithheldNamespace[] = [];
  /** Home namespaces that get no tenant. */
  refuses: string[] = [];
  /** Besides what was asked for. */
  extraNamespaces: Offer['namespaces'] = [];
  more: Partial<Offer> = {};
  /** Its SharingPolicy; undefined: as of a version that does not name it. */
  policy: string | undefined;
  /** When it ends what it has granted. */
  ends: string | undefined;
  api: ApiAccess = { server: 'https://192.0.2.1:6443', serverName: 'api.milan' };
  tokens = 0;
  #offer: OfferDocument | undefined;
  #generation = 0;

  constructor(consumer: string, clock: Clock) {
    this.consumer = consumer;
    this.#clock = clock;
  }

  received({ request, acceptance }: Pick<Documents, 'request' | 'acceptance'>): void {
    this.request = request;
    this.requests.push(request);
    this.acceptance = acceptance;
    if (request === undefined) {
      this.contract = undefined;
      this.#offer = undefined;
    } else if (this.assessment === 'Automatic') {
      this.#offer ??= this.#newOffer();
      this.#sign();
    }
  }

  /** Another offer, where it would differ. */
  renew(): void {
    if (this.#offer !== undefined) this.#offer = this.#newOffer();
  }

  documents(): Pick<Documents, 'offer' | 'grant'> {
    if (this.request === undefined) return {};
    return {
      ...(this.#offer !== undefined && !this.withdrawn && { offer: this.#offer }),
      grant: this.#grant(),
    };
  }

  credential(): Credential {
    if (this.#grant().state !== 'Active') throw new Error('nothing is granted');
    this.tokens++;
    return { token: `token-${this.tokens}`, expires: iso(this.#clock.now() + this.tokenLifeMs) };
  }

  get offer(): Offer | undefined {
    return this.#offer?.offer;
  }

  #grant(): GrantDocument {
    if (this.assessment === 'Denied') return { state: 'Denied', reason: 'DeniedHere', message: 'not you' };
    if (this.assessment === 'Ended') return { state: 'Ended', reason: 'NoPolicyMatches', message: 'over' };
    const { text, providerSignature: signature } = this.contract ?? {};
    if (text === undefined || signature === undefined)
      return { state: 'Pending', reason: 'WaitingForDecision' };
    const withheld = this.withheld.length > 0 && { withheld: this.withheld };
    const { api, policy, ends } = this;
    return { state: 'Active', ...withheld, ...present({ policy, ends }), contract: { text, signature }, api };
  }

  #sign(): void {
    const { acceptance } = this;
    if (!this.signs || acceptance === undefined || acceptance.text === this.contract?.text) return;
    const { generation } = JSON.parse(acceptance.text) as { generation: number };
    if (generation !== this.offer?.generation) return;
    const { text, signature: consumerSignature } = acceptance;
    this.contract = { text, consumerSignature, providerSignature: this.identity.sign('contract', text) };
  }

  #newOffer(): OfferDocument {
    const now = Math.floor(this.#clock.now() / 1000) * 1000;
    this.#generation = Math.max(this.#generation + 1, Math.floor(this.#clock.now()));
    const { storage: _storage, ...each } = this.resources;
    const asked = (this.request?.namespaces ?? []).filter((name) => !this.refuses.includes(name));
    const offer: Offer = {
      provider: this.identity.clusterID,
      consumer: this.consumer,
      generation: this.#generation,
      issued: iso(now),
      expires: iso(now + this.lifeMs),
      resources: this.resources,
      shapes: [{ count: 1, resources: each, architecture: 'arm64', operatingSystem: 'linux' }],
      classes: {},
      labels: { 'topology.kubernetes.io/region': 'north' },
      images: [],
      prices: {},
      namespaces: [
        ...asked.map((name) => ({ homeNamespace: name, tenantNamespace: `${name}-t` })),
        ...this.extraNamespaces,
      ],
      podSecurity: 'baseline',
      keepForSeconds: 3600,
      ...(this.defaultRequests && { defaultRequests: this.defaultRequests }),
      ...this.more,
    };
    return { offer, signature: this.identity.sign('offer', canonicalText(offer)) };
  }
}
