import { collect } from './body.ts';
import type { KubeClient, RawRequest } from './client.ts';
import { parseStatus, statusError } from './status-error.ts';

const MAX_TEXT_BYTES = 1024 * 1024;

/**
 * Reads the text at a path that is not an object, such as `/version`. Throws TributaryError unless the status is 2xx.
 *
 * @param options `isFresh`: see RawRequest
 */
export async function readText(
  client: KubeClient,
  path: string,
  options: Pick<RawRequest, 'signal' | 'isFresh'>,
): Promise<string> {
  const { status, body } = await client.raw({ method: 'GET', path, ...options });
  const text = await collect(body, { maxBytes: MAX_TEXT_BYTES, excess: 'throw' });
  if (status < 200 || status > 299) throw statusError(status, parseStatus(text), { what: `GET ${path}` });
  return text.toString('utf8');
}
