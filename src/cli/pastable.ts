/**
 * Commands in what people read can be pasted as they stand: they name the kubeconfig and the context that the command before was
 * told to use. A sentence with "over there" before its command is about the other cluster, of which we know neither. Pure.
 */
import type { Where } from './kubeconfig.ts';

export type Pastable = (text: string) => string;

/** Our commands that speak to a cluster. */
export const ON_CLUSTERS: readonly string[] = [
  'approve',
  'dashboard',
  'deny',
  'discover',
  'doctor',
  'id',
  'install',
  'logs',
  'network-key',
  'offload',
  'peer',
  'peerings',
  'policy',
  'renew',
  'status',
  'support-bundle',
  'tenant-kubeconfig',
  'tether',
  'token',
  'top',
  'uninstall',
  'unoffload',
  'unpeer',
  'untether',
  'upgrade',
];

/** How commands of kubectl begin in our texts. */
const OF_KUBECTL = [
  '-n',
  '--namespace',
  'apply',
  'create',
  'delete',
  'describe',
  'get',
  'label',
  'patch',
  'replace',
  'rollout',
  'scale',
];

const OF_HELM = ['rollback', 'uninstall', 'upgrade'];

const calls = (program: string, words: readonly string[]): string =>
  `${program} (?=(?:${words.join('|')})(?![-\\w]))`;
const CALL = new RegExp(
  `(?<![-\\w/.])(?:${calls('tributary', ON_CLUSTERS)}|${calls('kubectl', OF_KUBECTL)}|${calls('helm', OF_HELM)})`,
  'gu',
);
const SENTENCE_ENDS = /[.;?] |\n/u;

export function pastableAt({ kubeconfig, context }: Where): Pastable {
  if (kubeconfig === undefined && context === undefined) return (text) => text;
  const optionsOf = (program: string): string =>
    [
      ...(kubeconfig === undefined ? [] : ['--kubeconfig', quoted(kubeconfig)]),
      ...(context === undefined
        ? []
        : [program === 'helm ' ? '--kube-context' : '--context', quoted(context)]),
    ].join(' ');
  return (text) =>
    text.replaceAll(CALL, (program: string, at: number) => {
      const sentence = text.slice(0, at).split(SENTENCE_ENDS).at(-1) ?? '';
      return /over there/iu.test(sentence) ? program : `${program}${optionsOf(program)} `;
    });
}

/** As a shell takes it for one word. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/u.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
