/** `tributary peer`. */
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { clusterCommand } from './environment.ts';
import { parsePeer, PEER_OPTIONS } from './peer-arguments.ts';
import { peerByContext } from './peer-by-context.ts';
import { peerByEndpoint } from './peer.ts';

/**
 * Exits with EXIT.ok once a pod could run there, with EXIT.pending where a person has to approve it or to bring a
 * token, and with EXIT.failed where it is denied, impossible or not there in time; what was written stays, and goes on
 * working.
 */
export const peerCommand: Command = clusterCommand({
  name: 'peer',
  summary: 'Peer with another cluster, so that it can run pods of this one.',
  about:
    'Ends when a pod of this cluster could run there, or says what it waits for and who has to act. A cluster that is given ' +
    'without --id and --token shows its fingerprint, and you are asked whether it is the one that you mean. With --to-context it ' +
    'does on both sides what is needed, with your rights there.',
  arguments: [
    {
      name: 'ENDPOINT',
      text: 'HOST[:PORT] of the peering endpoint of the other cluster; not with --to-context',
      isOptional: true,
    },
  ],
  options: PEER_OPTIONS,
  examples: [
    {
      line: 'tributary peer --context rome --to-context milan',
      does: 'Let pods of rome run in milan; both contexts are in your kubeconfig',
    },
    {
      line: 'tributary --context milan token create | tributary --context rome peer 203.0.113.7:30743 --token -',
      does: 'Peer with a token that the other side has made',
    },
    {
      line: 'tributary peer 203.0.113.7:30743 --namespaces shop,shop-db',
      does: 'Ask for two namespaces, and confirm who answers',
    },
  ],
  exits: { [EXIT.pending]: 'waits for somebody: an approval, or a join token' },
  parse: parsePeer,
  run: async (args, session) =>
    args.toContext === undefined ? peerByEndpoint(args, session) : peerByContext(args, session),
});
