import { type Answer, encode, type Packet, type Question } from 'dns-packet';

import type { Announcement } from '../../../../../src/discovery/candidates.ts';
import type { LanInterface } from '../../../../../src/discovery/lan/interfaces.ts';
import { LanSource, type LanSourceOptions } from '../../../../../src/discovery/lan/lan-source.ts';
import type { PacketSource } from '../../../../../src/discovery/lan/link.ts';
import { createLogger } from '../../../../../src/lib/log.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { LanWire, onlyInterface } from './lan-wire.ts';

export const MILAN: Announcement = {
  clusterID: 'milan'.padEnd(26, 'a'),
  clusterName: 'Milan',
  port: 7443,
  protocols: [1],
};
export const SERVICE: string = '_tributary._tcp.local';
export const INSTANCE: string = `milan-milanaaa.${SERVICE}`;
export const HOST: string = 'milan-milanaaa.local';
export const OTHER: PacketSource = { address: '10.0.0.2', port: 5353 };

/** LAN discovery of one host on a wire in memory, and everything that it says there. */
export class LanRig {
  readonly clock: FakeClock = new FakeClock();
  readonly wire: LanWire = new LanWire();
  interfaces: LanInterface[] = [onlyInterface('10.0.0.1')];
  source: LanSource;
  log = '';
  random = 0;

  constructor() {
    this.source = this.make();
  }

  make(options: Partial<LanSourceOptions> = {}): LanSource {
    this.source = new LanSource({
      clock: this.clock,
      log: createLogger({ level: 'info', now: () => 0, write: (line) => (this.log += line) }),
      random: () => this.random,
      openLink: this.wire.open,
      listInterfaces: () => this.interfaces,
      ...options,
    });
    return this.source;
  }

  async start(): Promise<void> {
    await this.source.announce(MILAN);
    await this.source.start();
  }

  /** Probing and announcing is over, and the second within which nothing is repeated. */
  async settle(): Promise<void> {
    await this.start();
    await this.clock.advance(6000);
    this.wire.sent.length = 0;
  }

  /** Somebody else sends. */
  hear(packet: Packet, from: PacketSource = OTHER): void {
    this.wire.deliver(encode(packet), from);
  }

  query(questions: Question[], more: Packet = {}): void {
    this.hear({ type: 'query', questions, ...more });
  }

  respond(...answers: Answer[]): void {
    this.hear({ type: 'response', answers });
  }

  /** All that the host has sent. */
  get sent(): Packet[] {
    return this.wire.sent.filter(({ from }) => from.address === '10.0.0.1').map(({ packet }) => packet);
  }

  get responses(): Packet[] {
    return this.sent.filter(({ type }) => type === 'response');
  }

  get probes(): Packet[] {
    return this.sent.filter(({ type, authorities = [] }) => type === 'query' && authorities.length > 0);
  }

  get browses(): Packet[] {
    return this.sent.filter(({ type, questions = [] }) => type === 'query' && questions[0]?.type === 'PTR');
  }
}

/** `TYPE name` of each, in order. */
export const named = (records: readonly Answer[] = []): string[] =>
  records.map((record) => `${record.type} ${record.name}`).toSorted();

export const srvOf = (port: number, target: string = 'other.local', name: string = INSTANCE): Answer => ({
  name,
  type: 'SRV',
  ttl: 120,
  flush: true,
  data: { target, port },
});
