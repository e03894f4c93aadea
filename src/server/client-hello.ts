import type { Socket } from 'node:net';

/** A TLS record says its type, a version and its length (RFC 8446, section 5.1); a ClientHello begins with its own type. */
const RECORD_HEADER = 5;
const HANDSHAKE = 22;
const MAJOR_VERSION = 3;
const CLIENT_HELLO = 1;
/** The most that a record holds that is not encrypted. */
const MOST_BYTES = 16_384;

/** Whether these bytes are the first record of a TLS client: `partly` where more may come, `never` where they are not. */
export function clientHelloIn(bytes: Buffer): 'whole' | 'partly' | 'never' {
  const [type, major, , high = 0, low = 0, message = CLIENT_HELLO] = bytes;
  if ((type ?? HANDSHAKE) !== HANDSHAKE || (major ?? MAJOR_VERSION) !== MAJOR_VERSION) return 'never';
  if (message !== CLIENT_HELLO) return 'never';
  if (bytes.length < RECORD_HEADER) return 'partly';
  const length = high * 256 + low;
  if (length === 0 || length > MOST_BYTES) return 'never';
  return bytes.length >= RECORD_HEADER + length ? 'whole' : 'partly';
}

/**
 * Reads until the client's first record is there, and puts back what was read; calls back with whether it was a ClientHello.
 * Until then a connection costs a socket and no TLS. The returned function ends the wait.
 */
export function awaitClientHello(socket: Socket, done: (isHello: boolean) => void): () => void {
  let bytes: Buffer = Buffer.alloc(0);
  const settle = (isHello: boolean): void => {
    stop();
    if (bytes.length > 0 && isHello) socket.unshift(bytes);
    done(isHello);
  };
  const look = (): void => {
    for (let chunk = read(socket); chunk !== null; chunk = read(socket))
      bytes = Buffer.concat([bytes, chunk]);
    const found = clientHelloIn(bytes);
    if (found !== 'partly') settle(found === 'whole');
  };
  const ended = (): void => settle(false);
  const stop = (): void => {
    socket.off('readable', look);
    socket.off('end', ended);
  };
  socket.on('readable', look);
  socket.on('end', ended);
  return stop;
}

const read = (socket: Socket): Buffer | null => socket.read() as Buffer | null;
