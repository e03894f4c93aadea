/** On everything that is made here for a peer: which one. */
export const LABEL_PEER = 'tributary.dev/peer';
