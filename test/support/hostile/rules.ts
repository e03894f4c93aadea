/** Rules about other pods by which a peer would steer, or watch, those of others. */
import { direct } from './pod-rows.ts';
import type { HostileRow } from './row.ts';

const term = (more: object): object => ({
  topologyKey: 'kubernetes.io/hostname',
  labelSelector: { matchLabels: { app: 'x' } },
  ...more,
});

export const HOSTILE_RULES: readonly HostileRow[] = [
  direct('anti-affinity', 'nodes without our own pods', 'in the namespaces of that peer only', {
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [term({ namespaceSelector: {} })],
      },
    },
  }),
  direct('affinity', 'nodes with our own pods', 'in the namespaces of that peer only', {
    affinity: {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, podAffinityTerm: term({ namespaces: ['kube-system'] }) },
        ],
      },
    },
  }),
  direct(
    'anti-affinity-of-others',
    'nodes without pods of another peer',
    'in the namespaces of that peer only',
    {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 1,
              podAffinityTerm: term({
                namespaceSelector: { matchLabels: { 'tributary.dev/peer': 'p'.repeat(26) } },
              }),
            },
          ],
        },
      },
    },
  ),
  direct('affinity-by-our-label', 'what our nodes are labelled with', 'by host, zone and region only', {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [term({ topologyKey: 'example.com/secret' })],
      },
    },
  }),
  direct(
    'spread-by-our-label',
    'what our nodes are labelled with, by spreading',
    'by host, zone and region only',
    {
      topologySpreadConstraints: [
        {
          topologyKey: 'example.com/secret',
          maxSkew: 1,
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { app: 'x' } },
        },
      ],
    },
  ),
  direct('many-rules', 'the time of our scheduler', '32 rules about other pods', {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: Array.from({ length: 33 }, () => ({
          weight: 1,
          podAffinityTerm: term({}),
        })),
      },
    },
  }),
];
