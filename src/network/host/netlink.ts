/**
 * Of npm `netlink` only what carries messages. Its descriptions of rtnetlink, nl80211 and WireGuard are half a megabyte of code, which
 * the whole package loads; the messages themselves are made here, in this folder.
 */
export { Protocol } from 'netlink/dist/constants.js';
export { createNetlink } from 'netlink/dist/netlink.js';
export { RawNetlinkSocket } from 'netlink/dist/raw.js';
export {
  formatMessage,
  getU16,
  getU32,
  parseError,
  parseMessages,
  putU16,
  putU16be,
  putU32,
  putU8,
} from 'netlink/dist/structs.js';
