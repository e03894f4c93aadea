/** The lab's command line. */
import { parseArgs } from 'node:util';

import type { LabOptions } from './lab.ts';
import type { Workload } from './spec.ts';

export type LabCommand =
  | { readonly verb: 'up'; readonly options: LabOptions }
  | { readonly verb: 'status'; readonly name: string }
  | { readonly verb: 'down'; readonly name: string; readonly force: boolean }
  | { readonly verb: 'kubeconfig'; readonly name: string; readonly cluster: string }
  | {
      readonly verb: 'load-image';
      readonly name: string;
      readonly image: string;
      /** Default: all. */
      readonly clusters: readonly string[] | undefined;
    }
  | { readonly verb: 'help' };

export const USAGE = `usage: npm run lab -- COMMAND [OPTIONS]

  up [--workload containers|kwok] [--clusters home,foreign,...] [--nodes N] [--no-metrics] [--no-policies]
                      brings clusters up; containers (default) are real and need root, kwok needs nothing. Real ones
                      enforce NetworkPolicies; with --no-policies these are only objects
  status              lists clusters, nodes and daemons
  kubeconfig CLUSTER  prints the path of an administrator's kubeconfig
  load-image IMAGE|FILE [--clusters NAME,...]
                      puts an image into the containerd of every node: an OCI or docker archive, or the name of one that
                      buildah, podman or docker has here. Pods use it with any imagePullPolicy
  down                removes everything, also after a crash

  --name NAME         which lab (default: lab); labs of different names live side by side
  --directory DIR     (up) where to keep data: on a disk (default: in the cache)
  --force             (down) even while another program works with it
`;

const DEFAULT_CLUSTERS = 'home,foreign';

const OPTIONS = {
  name: { type: 'string', default: 'lab' },
  workload: { type: 'string', default: 'containers' },
  clusters: { type: 'string' },
  nodes: { type: 'string', default: '1' },
  'no-metrics': { type: 'boolean', default: false },
  'no-policies': { type: 'boolean', default: false },
  directory: { type: 'string' },
  force: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Throws an error of one line if the arguments are not a command. */
export function parseArguments(args: readonly string[]): LabCommand {
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS });
  const [verb, object, ...rest] = positionals;
  if (values.help || verb === undefined || verb === 'help') return { verb: 'help' };
  const takesOne = verb === 'kubeconfig' || verb === 'load-image';
  const unexpected = takesOne ? rest[0] : object;
  if (unexpected !== undefined) throw new Error(`unexpected ${unexpected}`);
  switch (verb) {
    case 'up':
      return { verb, options: upOptions(values) };
    case 'down':
      return { verb, name: values.name, force: values.force };
    case 'status':
      return { verb, name: values.name };
    case 'kubeconfig':
      return { verb, name: values.name, cluster: given(object, 'kubeconfig of which cluster?') };
    case 'load-image':
      return {
        verb,
        name: values.name,
        image: given(object, 'load which image? Name one, or an archive of one'),
        clusters: values.clusters?.split(','),
      };
    default:
      throw new Error(`unknown command ${verb}: there are up, status, kubeconfig, load-image and down`);
  }
}

function given(object: string | undefined, question: string): string {
  if (object === undefined) throw new Error(question);
  return object;
}

function upOptions(values: {
  name: string;
  workload: string;
  clusters?: string;
  nodes: string;
  'no-metrics': boolean;
  'no-policies': boolean;
  directory?: string;
}): LabOptions {
  const nodes = parseNodes(values.nodes);
  const workload = parseWorkload(values.workload);
  const extras = {
    ...(values['no-metrics'] && { metricsServer: false }),
    // People who write a policy expect that somebody enforces it.
    ...(workload === 'containers' && !values['no-policies'] && { networkPolicies: true }),
  };
  return {
    name: values.name,
    workload,
    clusters: (values.clusters ?? DEFAULT_CLUSTERS).split(',').map((name) => ({ name, nodes, ...extras })),
    ...(values.directory === undefined ? {} : { directory: values.directory }),
  };
}

function parseWorkload(text: string): Workload {
  if (text === 'containers' || text === 'kwok') return text;
  throw new Error(`--workload is containers or kwok, not ${text}`);
}

function parseNodes(text: string): number {
  const nodes = Number(text);
  if (Number.isInteger(nodes) && nodes >= 1) return nodes;
  throw new Error(`--nodes is a number from 1, not ${text}`);
}
