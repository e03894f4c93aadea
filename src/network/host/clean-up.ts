import { getSystemErrorName } from 'node:util';
import { Protocol, RawNetlinkSocket, formatMessage, parseError, parseMessages } from './netlink.ts';

import { TributaryError } from '../../lib/errors.ts';
import { type Owner, PROTOCOLS, TABLES } from './host-config.ts';
import { deleteLink, dumpLinks, isOurs } from './links.ts';
import { type Attribute, encodeAttributes, text } from './messages.ts';
import { dumpRoutes, linkIndex } from './routes.ts';
import { KernelError } from './rtnetlink.ts';
import { deleteRule, describeRule, dumpRules } from './rules.ts';
import { removeRoutes } from './set-routes.ts';
import type { HostContext } from './work.ts';

/** Of linux/netfilter/nfnetlink.h and nf_tables.h. */
const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;
const NFTABLES = 10;
const DELETE_TABLE = (NFTABLES << 8) | 2;
const NFTA_TABLE_NAME = 1;
const NFPROTO_INET = 1;
const REQUEST = 1;
const ACK = 4;
const TYPE_ERROR = 2;

/**
 * Removes all that bears the marks of this owner. It uses netlink alone, so that it needs no program and no memory of what was
 * set. Tunnels go first and fallback routes last, so that what is still sent goes nowhere.
 */
export async function cleanUpHost(host: HostContext, owner: Owner): Promise<void> {
  const { kernel, work } = host;
  const step = async (what: string, run: () => Promise<void>): Promise<void> => {
    await work.attempt(what, async () => {
      await run();
      return 0;
    });
  };
  await step('links', async () => {
    for (const link of (await dumpLinks(kernel)).filter((link) => isOurs(owner, link))) {
      await work.remove(`link ${link.name}`, async () => deleteLink(kernel, link.index));
    }
  });
  await step('rules', async () => {
    for (const rule of (await dumpRules(kernel)).filter(({ protocol }) => protocol === PROTOCOLS[owner])) {
      await work.remove(describeRule(rule), async () => deleteRule(kernel, rule));
    }
  });
  await step('routes', async () => {
    const links = linkIndex(await dumpLinks(kernel));
    const routes = await dumpRoutes(kernel, links);
    await removeRoutes(
      host,
      routes.filter(({ protocol }) => protocol === PROTOCOLS[owner]),
      links,
    );
  });
  await work.remove(`nftables table ${TABLES[owner]}`, async () => deleteTable(TABLES[owner]));
}

/** Removes a table of family `inet` with all that is in it, without `nft`. Throws KernelError; ENOENT when there is none. */
async function deleteTable(name: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = new RawNetlinkSocket(Protocol.NETFILTER, {
    recvBufferSize: 0,
    sendBufferSize: 0,
  });
  socket.on('error', (error) => reject(new TributaryError('Unavailable', `netlink: ${error.message}`)));
  socket.on('message', (data) => {
    for (const message of parseMessages(data)) {
      if (message.type !== TYPE_ERROR) continue;
      const { errno } = parseError(message.data, message.flags);
      if (errno === 0) resolve();
      else reject(new KernelError(getSystemErrorName(errno)));
    }
  });
  try {
    socket.send(Buffer.concat([batch(BATCH_BEGIN), deletion(name), batch(BATCH_END)]), {}, (error) => {
      if (error) reject(new TributaryError('Unavailable', `netlink: ${error.message}`));
    });
    await promise;
  } finally {
    socket.close();
  }
}

/** Begins or ends a batch for this subsystem: version 0, in network order. */
const batch = (type: number): Buffer => message(type, REQUEST, [0, 0, 0, NFTABLES], []);

const deletion = (name: string): Buffer =>
  message(DELETE_TABLE, REQUEST | ACK, [NFPROTO_INET, 0, 0, 0], [[NFTA_TABLE_NAME, text(name)]]);

function message(type: number, flags: number, head: number[], attributes: readonly Attribute[]): Buffer {
  const data = [Buffer.from(head), encodeAttributes(attributes)];
  return Buffer.concat(formatMessage({ type, flags, seq: 1, port: 0, data }));
}
