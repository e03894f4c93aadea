import { contractText, draftContract } from '../../src/peering/contract.ts';
import type {
  DocumentChanges,
  Documents,
  OfferDocument,
  RequestDocument,
} from '../../src/peering/protocol/documents.ts';
import { PeeringNode } from '../../test/support/peering/peering-node.ts';
import type { AttackBed } from './bed.ts';
import { RawClient } from './raw.ts';

/** A cluster that borrows, as far as its provider sees of it: identity, link and documents. It says what the bench makes it say. */
export class Borrower {
  readonly node: PeeringNode = new PeeringNode();
  readonly name: string;
  readonly #bed: AttackBed;
  readonly #says: Documents = {};
  #client: RawClient | undefined;
  #token = '';

  constructor(bed: AttackBed, name: string) {
    this.#bed = bed;
    this.name = name;
  }

  get id(): string {
    return this.node.id;
  }

  /** With its own credential; from `peered` on. */
  get client(): RawClient {
    if (this.#client === undefined) throw new Error(`${this.name} has no credential`);
    return this.#client;
  }

  /** Resolves when it is linked. */
  async start(): Promise<void> {
    const { clusterID, endpoint } = this.#bed;
    await this.node.start();
    this.node.registry.setTargets([{ name: clusterID, clusterID, endpoints: [endpoint] }]);
    await this.#bed.until(`${this.name} is linked`, () => this.node.registry.view(clusterID) !== undefined);
  }

  async stop(): Promise<void> {
    this.#client?.close();
    await this.node.stop();
  }

  /** The last word of the provider. */
  get heard(): DocumentChanges {
    const all = this.node.heard.map(({ changes }) => changes);
    return Object.assign({}, ...all) as DocumentChanges;
  }

  /** Documents that are sent; those that are not named stay as they are. */
  say(documents: Documents): void {
    Object.assign(this.#says, documents);
    this.node.says.set(this.#bed.clusterID, { ...this.#says });
    this.node.registry.publish(this.#bed.clusterID);
  }

  /** From the request to the contract in force, and a credential. Returns the tenant namespaces. */
  async peered(request: Partial<RequestDocument> = {}): Promise<string[]> {
    this.say({ request: { clusterName: this.name, namespaces: ['shop'], ...request } });
    let accepted: number | undefined;
    await this.#bed.until(`the grant of ${this.name} is Active`, () => {
      const { offer, grant } = this.heard;
      if (offer != null && offer.offer.generation !== accepted) {
        accepted = offer.offer.generation;
        this.#accept(offer);
      }
      return grant?.state === 'Active';
    });
    await this.renewCredential();
    const { server, pki } = this.#bed.cluster;
    this.#client ??= new RawClient(server, pki.authority.cert, () => this.#token);
    const text = this.heard.grant?.contract?.text ?? '{}';
    const { namespaces } = JSON.parse(text) as { namespaces: { tenantNamespace: string }[] };
    return namespaces.map(({ tenantNamespace }) => tenantNamespace);
  }

  /** Throws where it is refused one. */
  async renewCredential(): Promise<void> {
    const { signal } = new AbortController();
    this.#token = (await this.node.registry.call(this.#bed.clusterID, 'credential', {}, signal)).token;
  }

  #accept({ offer }: OfferDocument): void {
    const text = contractText(draftContract(offer, offer.resources, Date.now()));
    this.say({ acceptance: { text, signature: this.node.identity.sign('contract', text) } });
  }
}
