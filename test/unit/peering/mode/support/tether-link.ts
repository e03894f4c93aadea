import { TributaryError } from '../../../../../src/lib/errors.ts';
import { Listeners } from '../../../../../src/lib/listeners.ts';
import { silentLogger } from '../../../../../src/lib/log.ts';
import { Delivery } from '../../../../../src/peering/link/delivery.ts';
import { DocumentPaces } from '../../../../../src/peering/link/document-paces.ts';
import { Outbox } from '../../../../../src/peering/link/outbox.ts';
import type { LinkView, PeerLinks } from '../../../../../src/peering/ports.ts';
import type { DocumentChanges, RenewParams } from '../../../../../src/peering/protocol/documents.ts';
import type { FakeClock } from '../../../../support/fake-clock.ts';
import type { Process, TetherSide } from './tether-side.ts';

export type SideName = 'device' | 'company';
const OTHER = { device: 'company', company: 'device' } as const;

/** One end of the link, with the process that holds it. */
interface End {
  process: Process;
  outbox: Outbox;
  delivery: Delivery;
}

/**
 * The link between a device and a company within this process. What each says is sent and handed over by the parts that do so over
 * sockets; only the sockets are missing.
 */
export class TetherLink {
  readonly #clock: FakeClock;
  /** Late bound: each side needs its view of this link. */
  readonly #side: (name: SideName) => TetherSide;
  readonly #changed = {
    device: new Listeners<[key: { clusterID?: string }]>(),
    company: new Listeners<[key: { clusterID?: string }]>(),
  };
  #ends: Record<SideName, End> | undefined;

  constructor(clock: FakeClock, side: (name: SideName) => TetherSide) {
    this.#clock = clock;
    this.#side = side;
  }

  /** Each says all that it has to say, as on every new link. Both must run. */
  up(): void {
    this.#ends = { device: this.#end('device'), company: this.#end('company') };
    const { device, company } = this.#ends;
    this.#tell();
    device.outbox.pump();
    company.outbox.pump();
  }

  down(): void {
    const ends = this.#ends;
    if (ends === undefined) return;
    this.#ends = undefined;
    for (const { outbox, delivery } of Object.values(ends)) {
      outbox.stop();
      void delivery.stop();
    }
    this.#tell();
  }

  /** As that side sees it. */
  of(name: SideName): PeerLinks {
    const view = (clusterID: string): LinkView | undefined =>
      this.#ends !== undefined && clusterID === this.#other(name).id ? this.#view(name) : undefined;
    return {
      view,
      views: () => [view(this.#other(name).id)].filter((one) => one !== undefined),
      problem: () => undefined,
      setTargets: () => undefined,
      publish: () => queueMicrotask(() => this.#ends?.[name].outbox.pump()),
      call: async (_clusterID, method, params, signal = new AbortController().signal) => {
        const { lending } = this.#ends?.[OTHER[name]].process ?? {};
        if (lending === undefined) throw new TributaryError('Unreachable', 'there is no link');
        const { identity } = this.#side(name);
        if (method === 'credential') return lending.credential(identity, signal);
        if (method === 'renew') return lending.renew(identity, params as RenewParams, signal);
        throw new TributaryError('Unreachable', `${method} is not answered here`);
      },
      onChange: this.#changed[name].add,
    };
  }

  #other(name: SideName): TetherSide {
    return this.#side(OTHER[name]);
  }

  #view(name: SideName): LinkView {
    const { id: clusterID, name: clusterName, identity } = this.#other(name);
    return {
      clusterID,
      clusterName,
      connected: true,
      dialledBy: name === 'device' ? 'Us' : 'Them',
      endpoint: 'company.example:7443',
      protocol: 1,
      software: '0.0.0',
      since: '2026-01-01T00:00:00Z',
      peerEndpoints: [],
      publicKey: identity.publicKey,
      networkKeys: [],
    };
  }

  #tell(): void {
    for (const name of ['device', 'company'] as const)
      this.#changed[name].tell({ clusterID: this.#other(name).id });
  }

  #end(name: SideName): End {
    const { process } = this.#side(name);
    if (process === undefined) throw new Error(`${name} does not run`);
    const { lending, borrowing } = process;
    const common = { clock: this.#clock, log: silentLogger };
    const { identity: peer, id } = this.#other(name);
    const isPresent = (): boolean => this.#ends?.[name] === end;
    const end: End = {
      process,
      outbox: new Outbox({
        ...common,
        documents: () => ({ ...lending.documents(id), ...borrowing.documents(id) }),
        send: (message, changes) => this.#send(name, message, changes),
      }),
      delivery: new Delivery({
        ...common,
        peer,
        isPresent,
        lending,
        borrowing,
        paces: new DocumentPaces(this.#clock),
        random: () => 0.5,
      }),
    };
    return end;
  }

  #send(name: SideName, message: number, changes: DocumentChanges): void {
    const text = JSON.stringify(changes);
    const ends = this.#ends;
    // Whoever was killed meanwhile hears nothing.
    const later = (act: (now: Record<SideName, End>) => void): void =>
      void setImmediate(() => {
        if (ends !== undefined && this.#ends === ends) act(ends);
      });
    later((now) =>
      now[OTHER[name]].delivery.give(
        JSON.parse(text) as DocumentChanges,
        (problem) => later(() => now[name].outbox.acknowledged(message, problem)),
        () => undefined,
      ),
    );
  }
}
