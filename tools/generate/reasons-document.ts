/** docs/reference/reasons.md, from src/api/reason-texts.ts. */
import {
  ADVERTISEMENT_TEXTS,
  FOREIGN_CLUSTER_TEXTS,
  OFFLOADED_TEXTS,
  type ReasonText,
  VIRTUAL_NODE_TEXTS,
} from '../../src/api/reason-texts.ts';

const table = (texts: Readonly<Record<string, ReasonText>>): string =>
  [
    '| reason | means | do |',
    '| --- | --- | --- |',
    ...Object.entries(texts).map(([reason, { means, todo }]) => `| \`${reason}\` | ${means} | ${todo} |`),
  ].join('\n');

export const reasonsDocument = (): string => `<!-- Made by tools/generate.ts from src/api/reason-texts.ts. -->

# Reasons

A reason is one word that says why something is as it is, in conditions, states and events. The message beside it has the
details. Reasons of tunnels are in [network](../network.md), of namespaces in [namespaces](../namespaces.md), of tethers
in [tethering](../tethering.md), of lending in [peering](../peering.md).

## On a pod

Condition \`tributary.dev/Offloaded\` with status False, and events of the same name.

${table(OFFLOADED_TEXTS)}

## On a VirtualNode

${table(VIRTUAL_NODE_TEXTS)}

## On a ForeignCluster

${table(FOREIGN_CLUSTER_TEXTS)}

## On an Advertisement

${table(ADVERTISEMENT_TEXTS)}
`;
