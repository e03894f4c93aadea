import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { type AddressInfo, createServer, type Server } from 'node:net';
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  type DecodedPacket,
  encode,
  type Packet,
  TRUNCATED_RESPONSE,
} from 'dns-packet';

/** A question that has arrived, with the means to answer it in any way. */
export interface Asked {
  query: DecodedPacket;
  name: string;
  type: string;
  over: 'udp' | 'tcp';
  /** The proper answer. */
  answer: Packet;
  /** Sends these bytes, from the address that was asked unless another socket is given. */
  send: (bytes: Buffer, from?: Socket) => void;
}

const TTL = 60;

/** An authoritative DNS server on loopback, over UDP and TCP, that answers from a list of records or as it is told. */
export class DnsServer {
  /** The zone. */
  records: Answer[] = [];
  /** Handles a question instead of the zone; false leaves it to the zone. */
  intercept: (asked: Asked) => boolean = () => false;
  /** What was asked, as "udp PTR name". */
  readonly log: string[] = [];
  readonly #udp: Socket = createSocket('udp4');
  readonly #tcp: Server = createServer();
  #port = 0;

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#tcp.listen(0, '127.0.0.1', resolve));
    this.#port = (this.#tcp.address() as AddressInfo).port;
    await new Promise<void>((resolve) => this.#udp.bind(this.#port, '127.0.0.1', resolve));
    this.#udp.on('message', (bytes, from) => this.#onUdp(bytes, from));
    this.#tcp.on('connection', (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes: Buffer) => {
        this.#handle(bytes.subarray(2), 'tcp', (reply) => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(reply.length);
          const message = Buffer.concat([length, reply]);
          // In pieces, as a stream may come.
          socket.setNoDelay(true);
          socket.write(message.subarray(0, 1));
          setImmediate(() => socket.write(message.subarray(1)));
        });
      });
    });
    return this;
  }

  async stop(): Promise<void> {
    this.#udp.close();
    await new Promise<void>((resolve) => this.#tcp.close(() => resolve()));
  }

  #onUdp(bytes: Buffer, { port, address }: RemoteInfo): void {
    this.#handle(bytes, 'udp', (reply, from = this.#udp) => from.send(reply, port, address));
  }

  #handle(bytes: Buffer, over: Asked['over'], send: Asked['send']): void {
    const query = decode(bytes);
    const [question] = query.questions ?? [];
    if (question === undefined) return;
    const { name, type } = question;
    this.log.push(`${over} ${type} ${name}`);
    const answer = this.#answer(query, name, type);
    if (this.intercept({ query, name, type, over, answer, send })) return;
    send(this.#fitting(answer, over));
  }

  #answer(query: DecodedPacket, name: string, type: string): Packet {
    const named = this.records.filter((record) => record.name.toLowerCase() === name.toLowerCase());
    const answers = named.filter((record) => record.type === type || record.type === 'CNAME');
    const soa: Answer = {
      type: 'SOA',
      name: 'example.org',
      ttl: TTL,
      data: { mname: 'ns.example.org', rname: 'who.example.org', serial: 1, minimum: TTL },
    };
    return {
      type: 'response',
      ...(query.id !== undefined && { id: query.id }),
      flags: AUTHORITATIVE_ANSWER | (named.length === 0 ? 3 : 0),
      questions: query.questions ?? [],
      answers,
      ...(answers.length === 0 && { authorities: [soa] }),
    };
  }

  /** What does not fit 1232 bytes is cut, as RFC 2181, section 9 has it. */
  #fitting(answer: Packet, over: Asked['over']): Buffer {
    const bytes = encode(answer);
    if (over === 'tcp' || bytes.length <= 1232) return bytes;
    return encode({ ...answer, answers: [], flags: (answer.flags ?? 0) | TRUNCATED_RESPONSE });
  }
}

/** The records of one announced cluster. */
export function announced(
  domain: string,
  {
    clusterID,
    label = clusterID,
    address,
    port,
    clusterName,
    protocols = [1],
    ttl = TTL,
  }: {
    clusterID: string;
    label?: string;
    address: string;
    port: number;
    clusterName?: string;
    protocols?: readonly number[];
    ttl?: number;
  },
): Answer[] {
  const instance = `${label}._tributary._tcp.${domain}`;
  const txt = [
    `id=${clusterID}`,
    ...(clusterName === undefined ? [] : [`name=${clusterName}`]),
    `v=${protocols.join()}`,
  ];
  return [
    { type: 'PTR', name: `_tributary._tcp.${domain}`, ttl, data: instance },
    { type: 'SRV', name: instance, ttl, data: { port, target: `${label}.${domain}` } },
    { type: 'TXT', name: instance, ttl, data: txt },
    { type: address.includes(':') ? 'AAAA' : 'A', name: `${label}.${domain}`, ttl, data: address },
  ];
}
