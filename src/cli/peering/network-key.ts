/** `tributary network-key create`: a secret by which the clusters of one owner know each other. */
import { randomBytes } from 'node:crypto';

import { APP_NAME, checkedSubdomain, LABEL_APP_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { secrets } from '../../api/resources.ts';
import { EXIT, positionals, wrongForm } from '../command-line.ts';
import { type ClusterCommand, clusterCommand, type Session } from './environment.ts';

export const NETWORK_KEY_USAGE =
  'tributary network-key create [--name NAME] [--kubeconfig FILE] [--context NAME]';

const KEY_BYTES = 32;
const DEFAULT_NAME = 'tributary-network-key';

export const networkKeyCommand: ClusterCommand = clusterCommand({
  usage: NETWORK_KEY_USAGE,
  options: ['name'],
  parse: (line) => {
    if (line.positionals[0] !== 'create') throw wrongForm('say what to do: create');
    positionals(line, ['create']);
    return { name: checkedSubdomain('name', line.values['name'] ?? DEFAULT_NAME) };
  },
  run: create,
});

async function create({ name }: { name: string }, { client, io, signal }: Session): Promise<number> {
  // Base64 of the bytes is the key, as with `openssl rand -base64 32`: text survives every tool that copies it.
  const key = randomBytes(KEY_BYTES).toString('base64');
  const metadata = { namespace: SYSTEM_NAMESPACE, name, labels: { [LABEL_APP_NAME]: APP_NAME } };
  const data = { key: Buffer.from(key).toString('base64') };
  await client.create(secrets, { metadata, type: 'Opaque', data }, { signal });
  io.out(`Secret ${SYSTEM_NAMESPACE}/${name} made. Copy it to each cluster of yours:

  kubectl -n ${SYSTEM_NAMESPACE} get secret ${name} -o go-template='{{.data.key | base64decode}}' |
    kubectl --context OTHER -n ${SYSTEM_NAMESPACE} create secret generic ${name} --from-file=key=/dev/stdin

and name it in a SharingPolicy and an AcceptancePolicy:

  spec: {peers: {networkKeySecretRef: {name: ${name}}}, approval: Automatic}
`);
  return EXIT.ok;
}
