import { expect, test } from '@jest/globals';

import { readAction } from '../../../src/dashboard/actions.ts';

const ID = 'm'.repeat(26);
const TOKEN = `${ID}.door.${'s'.repeat(43)}`;

test.each([
  [
    { do: 'approve', what: 'offer', name: 'x' },
    { do: 'approve', what: 'offer', name: 'x' },
  ],
  [
    { do: 'deny', name: 'x', more: 1 },
    { do: 'deny', what: 'request', name: 'x' },
  ],
  [
    { do: 'unpeer', name: ' milan ' },
    { do: 'unpeer', name: 'milan' },
  ],
  [
    { do: 'offload', namespace: 'shop', strategy: 'Local' },
    { do: 'offload', namespace: 'shop', strategy: 'LocalAndRemote' },
  ],
  [{ do: 'untether' }, { do: 'untether' }],
  [
    { do: 'peer', endpoint: 'a:1', clusterID: ID },
    { do: 'peer', endpoint: 'a:1', clusterID: ID },
  ],
  [
    { do: 'peer', endpoint: 'a:1', token: TOKEN },
    { do: 'peer', endpoint: 'a:1', clusterID: ID, token: TOKEN },
  ],
])('%j', (body, action) => expect(readAction(body)).toEqual(action));

test.each([
  [undefined, 'no object'],
  [[], 'no object'],
  [{}, 'does not know'],
  [{ do: 'constructor' }, 'does not know'],
  [{ do: 'approve', name: '../secrets' }, 'not the name of an object'],
  [{ do: 'unpeer', name: { toString: 'x' } }, 'not the name of an object'],
  [{ do: 'offload', namespace: 'a/b' }, 'not the name of an object'],
  [{ do: 'peer', endpoint: 'milan', clusterID: ID }, 'not HOST:PORT'],
  [{ do: 'peer', endpoint: 'a:1' }, 'give the ClusterID'],
  [{ do: 'peer', endpoint: 'a:1', clusterID: 'short' }, '26 letters'],
  [{ do: 'peer', endpoint: 'a:1', token: 'x.y.z' }, 'no join token'],
  [{ do: 'peer', endpoint: 'a:1', token: TOKEN, clusterID: 'n'.repeat(26) }, 'another cluster'],
])('%j is refused', (body, message) => {
  expect(() => readAction(body)).toThrow(
    expect.objectContaining({ code: 'Invalid', message: expect.stringContaining(message) }),
  );
});
