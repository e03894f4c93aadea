import type { Basics } from '../../lib/basics.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import type { LinkView, PeerIdentity } from '../ports.ts';
import {
  BINDING_KINDS,
  type CallMethod,
  type Calls,
  type DocumentChanges,
  type Documents,
  type Hello,
} from '../protocol/documents.ts';
import { Answers, type CallHandlers } from './answers.ts';
import { OutgoingCalls } from './calls.ts';
import type { Channel, ChannelEnd } from './channel.ts';
import type { Dialler } from './contest.ts';
import type { Acknowledge } from './delivery.ts';
import { Heartbeat } from './heartbeat.ts';
import { commonProtocol } from './hello.ts';
import { decode, encode, type Message, problemText, type Received } from './message.ts';
import { Outbox } from './outbox.ts';
import { type Rates, Throttle, WEIGHTS } from './throttle.ts';

/** Why we end a link, as its WebSocket close code; 4000 to 4999 are for private use (RFC 6455, section 7.4.2). */
export const CLOSE = {
  stopping: 4000,
  duplicate: 4001,
  replaced: 4002,
  unwanted: 4003,
  malformed: 4400,
  ourselves: 4403,
  incompatible: 4406,
  silent: 4408,
  tooMany: 4429,
} as const;

export interface LinkTimes {
  /** For the peer's hello. Default 10 s. */
  helloMs: number;
  /** Between two pings. Default 5 s. */
  heartbeatMs: number;
  /** Unanswered pings after which the peer counts as gone. Default 3. */
  heartbeatMisses: number;
  /** For the answer to a call, ours and theirs. Default 10 s. */
  callMs: number;
}

export const DEFAULT_TIMES: Readonly<LinkTimes> = {
  helloMs: 10_000,
  heartbeatMs: 5_000,
  heartbeatMisses: 3,
  callMs: 10_000,
};
const MAX_OUTGOING_CALLS = 64;
const MAX_INCOMING_CALLS = 16;

export interface LinkEvents {
  /** The peer has said who it is, and we have a version in common. */
  greeted(link: Link): void;
  /** The peer said something new of itself. */
  described(link: Link): void;
  /** Only after `activate`. */
  documents(link: Link, changes: DocumentChanges, acknowledge: Acknowledge): void;
  /** Once. */
  ended(link: Link, end: LinkEnd): void;
}

export interface LinkEnd {
  reason: string;
  code: number;
  /** The versions do not overlap. */
  incompatible: boolean;
  /** The peer broke the rules; worth a warning. */
  fault: boolean;
}

export interface LinkOptions extends Basics {
  channel: Channel;
  peer: PeerIdentity;
  dialledBy: Dialler;
  /** Endpoint that was dialled, or the address that the peer came from. */
  endpoint: string;
  hello: () => Hello;
  documents: () => Documents;
  handlers: CallHandlers;
  events: LinkEvents;
  times: LinkTimes;
  rates?: Rates;
}

/** One connection to one peer, from the first hello to its end. */
export class Link {
  readonly peer: PeerIdentity;
  readonly dialledBy: Dialler;
  readonly endpoint: string;
  readonly #options: LinkOptions;
  readonly #since: string;
  readonly #throttle: Throttle;
  readonly #heartbeat: Heartbeat;
  readonly #outbox: Outbox;
  readonly #calls: OutgoingCalls;
  readonly #answers: Answers;
  #hello: Hello | undefined;
  #saidHello = '';
  #protocol: number | undefined;
  #state: 'new' | 'greeted' | 'active' | 'ended' = 'new';
  /** Documents that came before it was sure that this link stays. */
  #early: { changes: DocumentChanges; acknowledge: Acknowledge } | undefined;
  #owesAck = false;
  /** Binding kinds of which the peer has something in force. */
  readonly #theirs = new Set<string>();
  #heard = false;
  #end: Omit<LinkEnd, 'code'> | undefined;
  #cancelHello = (): void => undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    const { channel, peer, dialledBy, endpoint, clock, log, times, rates, handlers } = options;
    this.peer = peer;
    this.dialledBy = dialledBy;
    this.endpoint = endpoint;
    this.#since = new Date(clock.now()).toISOString();
    this.#throttle = new Throttle(channel, clock, rates);
    const send = (message: Message): void => this.#send(message);
    this.#heartbeat = new Heartbeat({
      clock,
      intervalMs: times.heartbeatMs,
      misses: times.heartbeatMisses,
      ping: () => channel.ping(),
      isDeaf: () => this.#throttle.paused,
      dead: () => this.terminate('no answer to heartbeats'),
    });
    this.#outbox = new Outbox({
      documents: options.documents,
      send: (id, documents) => send({ type: 'state', id, documents }),
      clock,
      log,
    });
    this.#calls = new OutgoingCalls({
      clock,
      send: (id, method, params) => send({ type: 'call', id, method, params }),
      timeoutMs: times.callMs,
      max: MAX_OUTGOING_CALLS,
    });
    const timeoutMs = times.callMs;
    this.#answers = new Answers({ peer, handlers, send, clock, log, timeoutMs, max: MAX_INCOMING_CALLS });
  }

  start(): void {
    const { channel, clock, times } = this.#options;
    this.#cancelHello = clock.after(times.helloMs, () =>
      this.close(CLOSE.silent, `no hello within ${times.helloMs} ms`, { fault: true }),
    );
    channel.open({
      message: (text) => this.#received(text),
      ping: () => {
        this.#throttle.took(0);
        this.#heartbeat.asked();
      },
      pong: () => this.#heartbeat.pong(),
      closed: (end) => this.#closed(end),
    });
    this.describe();
  }

  get isGreeted(): boolean {
    return this.#state === 'greeted' && this.#end === undefined;
  }

  /** What the peer says of itself; undefined before it has. */
  get hello(): Hello | undefined {
    return this.#hello;
  }

  /** Neither side has anything in force over this link. */
  get isIdle(): boolean {
    return this.#state === 'active' && this.#heard && this.#theirs.size === 0 && this.#outbox.isSilent;
  }

  view(): Omit<LinkView, 'networkKeys'> {
    const { clusterName, software, endpoints = [] } = this.#hello ?? {};
    return {
      connected: true,
      clusterID: this.peer.clusterID,
      publicKey: this.peer.publicKey,
      dialledBy: this.dialledBy,
      endpoint: this.endpoint,
      since: this.#since,
      peerEndpoints: endpoints,
      ...present({ protocol: this.#protocol, clusterName, software, rttMs: this.#heartbeat.rttMs }),
    };
  }

  /** This is the link to that peer from now on: documents flow. */
  activate(): void {
    if (this.#state !== 'greeted') return;
    this.#state = 'active';
    this.#outbox.pump();
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) this.#options.events.documents(this, early.changes, early.acknowledge);
  }

  publish(): void {
    if (this.#state === 'active') this.#outbox.pump();
  }

  /** Says our hello, unless the last one is still true. */
  describe(): void {
    if (this.#state === 'ended') return;
    const hello = this.#options.hello();
    const text = JSON.stringify(hello);
    if (text === this.#saidHello) return;
    this.#saidHello = text;
    this.#send({ type: 'hello', hello });
  }

  async probe(ms: number): Promise<boolean> {
    // A link that is being closed counts as dead, whatever still comes from it.
    return this.#state !== 'ended' && this.#end === undefined && this.#heartbeat.probe(ms);
  }

  async call<Method extends CallMethod>(
    method: Method,
    params: Calls[Method]['params'],
    signal: AbortSignal | undefined,
  ): Promise<Calls[Method]['result']> {
    return this.#calls.call(method, params, signal);
  }

  close(code: number, reason: string, more: Partial<Pick<LinkEnd, 'incompatible' | 'fault'>> = {}): void {
    this.#end ??= { reason, incompatible: false, fault: false, ...more };
    this.#options.channel.close(code, reason);
  }

  terminate(reason: string): void {
    this.#end ??= { reason, incompatible: false, fault: false };
    this.#options.channel.terminate();
  }

  #send(message: Message): void {
    this.#options.channel.send(encode(message));
  }

  #received(raw: string): void {
    if (this.#end !== undefined || this.#state === 'ended') return;
    this.#throttle.took(raw.length);
    this.#heartbeat.heard();
    try {
      this.#handle(decode(raw));
    } catch (error) {
      if (!hasCode(error, 'Invalid')) {
        this.#options.log.error('cannot handle a message', { error: errorMessage(error) });
      }
      this.close(CLOSE.malformed, errorMessage(error), { fault: true });
    }
  }

  #handle(message: Received): void {
    if (message.type === 'hello') return this.#greeted(message.hello);
    if (this.#state === 'new') {
      return this.close(CLOSE.malformed, `${message.type} before hello`, { fault: true });
    }
    switch (message.type) {
      case 'state':
        return this.#gotState(message);
      case 'ack':
        return this.#outbox.acknowledged(message.id, message.problem);
      case 'call':
        return void this.#answers.answer(message.id, message.method, message.params);
      case 'result':
        return this.#calls.answered(message.id, message.result);
      case 'error':
        if (message.id !== undefined) this.#calls.refused(message.id, message.code, message.message);
        return;
      case 'unknown': {
        const { id, name } = message;
        const text = `unknown message ${problemText(name)}`;
        return this.#send({ type: 'error', ...(id !== undefined && { id }), code: 'Invalid', message: text });
      }
    }
  }

  #greeted(hello: Hello): void {
    const ours = this.#options.hello().protocols;
    const protocol = commonProtocol(ours, hello.protocols);
    const isNews = !deepEqual(hello, this.#hello);
    this.#hello = hello;
    if (protocol === undefined) {
      const reason = `no common protocol: ${ours.join(', ')} here, ${hello.protocols.join(', ')} there`;
      return this.close(CLOSE.incompatible, reason, { incompatible: true });
    }
    if (this.#state !== 'new') {
      this.#throttle.took(0, WEIGHTS.hello);
      if (isNews) this.#options.events.described(this);
      return;
    }
    this.#cancelHello();
    this.#protocol = protocol;
    this.#state = 'greeted';
    this.#heartbeat.start();
    this.#options.events.greeted(this);
  }

  #gotState({ id, documents, problems }: Received & { type: 'state' }): void {
    // A peer that does not wait for the acknowledgement could fill our memory.
    if (this.#owesAck) return this.close(CLOSE.malformed, 'state before the last ack', { fault: true });
    this.#owesAck = true;
    this.#heard = true;
    this.#throttle.took(0, WEIGHTS.state);
    for (const kind of BINDING_KINDS) {
      if (documents[kind] === null) this.#theirs.delete(kind);
      else if (documents[kind] !== undefined) this.#theirs.add(kind);
    }
    const acknowledge: Acknowledge = (problem) => {
      this.#owesAck = false;
      const all = [...problems, ...(problem === undefined ? [] : [problem])].join('; ');
      this.#send({ type: 'ack', id, ...(all !== '' && { problem: problemText(all) }) });
    };
    if (this.#state === 'active') this.#options.events.documents(this, documents, acknowledge);
    else this.#early = { changes: documents, acknowledge };
  }

  #closed({ code, reason }: ChannelEnd): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#cancelHello();
    const end = this.#end ?? { reason, incompatible: code === CLOSE.incompatible, fault: false };
    this.#heartbeat.stop();
    this.#throttle.stop();
    this.#outbox.stop();
    this.#answers.stop();
    this.#calls.end(end.reason);
    this.#early = undefined;
    this.#options.events.ended(this, { code, ...end });
  }
}
