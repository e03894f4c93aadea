/** Takes the place of the roles and of the host's network in the program for people, which has no native code: says where they are. */
import { TributaryError } from '../../src/lib/errors.ts';

function refused(): never {
  throw new TributaryError(
    'Unavailable',
    'this program has the commands for people only; roles and what changes a host run from the image of Tributary (see: ' +
      'tributary manifests --help)',
  );
}

export const ROLES: Readonly<Record<string, () => never>> = new Proxy({}, { get: () => refused });
export const createHost: () => never = refused;
export const kernelHasWireGuard: () => never = refused;
