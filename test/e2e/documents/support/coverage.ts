/** Which blocks of the documents are run, and why some are not. */
import type { Block } from './blocks.ts';
import type { Act, BlockAct, Reading } from './reading.ts';

export interface NotRun {
  readonly document: string;
  /** How the first line of the block begins. */
  readonly block: string;
  readonly why: string;
}

/** Nothing runs them. */
export const NOT_RUN: readonly NotRun[] = [
  {
    document: 'README.md',
    block: 'make demo',
    why: 'this is what runs the tests, and what is run beside them',
  },
  {
    document: 'README.md',
    block: 'make lab-up && npm run lab',
    why: 'as much was done to the clusters that these readings begin with',
  },
  {
    document: 'docs/by-hand.md',
    block: 'npm run lab -- load-image',
    why: 'the page goes on without it; the clusters of other readings were made so',
  },
  {
    document: 'docs/install.md',
    block: 'kubectl -n tributary-system create secret generic tributary-proxy',
    why: 'there is no such proxy; test/unit/peering/link/proxy.test.ts and test/integration/provider-address.test.ts have one',
  },
  {
    document: 'docs/network.md',
    block: 'kubectl describe nso',
    why: 'no policy of the documents is stricter over there; the unit tests of policies read the same fields',
  },
];

const isBlock = (act: Act): act is BlockAct => 'block' in act;

interface Claim {
  readonly document: string;
  readonly block: string;
}

/** What is wrong between documents and readings, in words; nothing if each block is run by somebody, or has a reason. */
export function gaps(
  blocks: readonly Block[],
  readings: readonly Reading[],
  notRun: readonly NotRun[],
): string[] {
  const run = readings.flatMap(({ document, acts }) =>
    acts.filter(isBlock).map(({ block }): Claim => ({ document, block })),
  );
  const matching = (claim: Claim): Block[] =>
    blocks.filter(({ document, text }) => document === claim.document && text.startsWith(claim.block));
  const ofNotRun = notRun.flatMap(matching);
  const ofRun = new Set(run.flatMap(matching));
  const nameOf = ({ document, line, text }: Block): string => `${document}:${line} ${text.split('\n')[0]}`;
  return [
    ...blocks
      .filter((block) => !ofRun.has(block) && !ofNotRun.includes(block))
      .map((block) => `nothing runs ${nameOf(block)}`),
    ...ofNotRun.filter((block) => ofRun.has(block)).map((block) => `is run after all: ${nameOf(block)}`),
    ...[...run, ...notRun]
      .map((claim) => ({ claim, count: matching(claim).length }))
      .filter(({ count }) => count !== 1)
      .map(({ claim: { document, block }, count }) => `${count} blocks of ${document} begin with: ${block}`),
  ];
}

/** What is to be replaced, or goes on in the background, and no block of the document says. */
export function unused(blocks: readonly Block[], readings: readonly Reading[]): string[] {
  return readings.flatMap(({ document, acts, replace = {} }) => {
    const texts = blocks.filter((block) => block.document === document).map(({ text }) => text);
    const names = [
      ...Object.keys(replace),
      ...acts
        .filter(isBlock)
        .flatMap((act) => [...Object.keys(act.replace ?? {}), ...Object.keys(act.blocking ?? {})]),
    ];
    return names
      .filter((name) => !texts.some((text) => text.includes(name)))
      .map((name) => `${document}: no block says ${name}`);
  });
}
