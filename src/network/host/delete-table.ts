import { getSystemErrorName } from 'node:util';

import netlink from 'netlink';

import { TributaryError } from '../../lib/errors.ts';
import { type Attribute, encodeAttributes, text } from './attributes.ts';
import { KernelError } from './rtnetlink.ts';

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

/** Removes a table of family `inet` with all that is in it, without `nft`. Throws KernelError, ENOENT when it is not there. */
export async function deleteTable(name: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = new netlink.RawNetlinkSocket(netlink.Protocol.NETFILTER, {
    recvBufferSize: 0,
    sendBufferSize: 0,
  });
  socket.on('error', (error) => reject(new TributaryError('Unavailable', `netlink: ${error.message}`)));
  socket.on('message', (data) => {
    for (const message of netlink.parseMessages(data)) {
      if (message.type !== TYPE_ERROR) continue;
      const { errno } = netlink.parseError(message.data, message.flags);
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

/** Version 0 for this subsystem, in network order. */
const batch = (type: number): Buffer => message(type, REQUEST, [0, 0, 0, NFTABLES], []);

const deletion = (name: string): Buffer =>
  message(DELETE_TABLE, REQUEST | ACK, [NFPROTO_INET, 0, 0, 0], [[NFTA_TABLE_NAME, text(name)]]);

function message(type: number, flags: number, head: number[], attributes: readonly Attribute[]): Buffer {
  const data = [Buffer.from(head), encodeAttributes(attributes)];
  return Buffer.concat(netlink.formatMessage({ type, flags, seq: 1, port: 0, data }));
}
