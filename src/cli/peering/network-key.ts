/** `tributary network-key create`: a secret by which the clusters of one owner know each other. */
import { randomBytes } from 'node:crypto';

import { APP_NAME, checkedSubdomain, LABEL_APP_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { secrets } from '../../api/resources.ts';
import { type Command, defineCommand } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { clusterCommand, type Session } from './environment.ts';

const KEY_BYTES = 32;
const DEFAULT_NAME = 'tributary-network-key';

const createCommand = clusterCommand({
  name: 'create',
  summary: 'Make a key, and say how it gets to the other clusters.',
  options: { name: { value: 'NAME', text: 'name of the Secret', fallback: DEFAULT_NAME } },
  parse: ({ values }) => ({ name: checkedSubdomain('name', values['name'] ?? DEFAULT_NAME) }),
  run: create,
});

export const networkKeyCommand: Command = defineCommand({
  name: 'network-key',
  summary: 'Secrets by which the clusters of one owner know each other.',
  children: [createCommand],
});

async function create(
  { name }: { name: string },
  { client, io, pastable, signal }: Session,
): Promise<number> {
  // Base64 of the bytes is the key, as with `openssl rand -base64 32`: text survives every tool that copies it.
  const key = randomBytes(KEY_BYTES).toString('base64');
  const metadata = { namespace: SYSTEM_NAMESPACE, name, labels: { [LABEL_APP_NAME]: APP_NAME } };
  const data = { key: Buffer.from(key).toString('base64') };
  await client.create(secrets, { metadata, type: 'Opaque', data }, { signal });
  io.out(
    pastable(`Secret ${SYSTEM_NAMESPACE}/${name} made. Copy it to each cluster of yours:

  kubectl -n ${SYSTEM_NAMESPACE} get secret ${name} -o go-template='{{.data.key | base64decode}}' |
    kubectl --context OTHER -n ${SYSTEM_NAMESPACE} create secret generic ${name} --from-file=key=/dev/stdin

and name it in a SharingPolicy and an AcceptancePolicy:

  spec: {peers: {networkKeySecretRef: {name: ${name}}}, approval: Automatic}
`),
  );
  return EXIT.ok;
}
