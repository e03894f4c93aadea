/**
 * A tenth of `make conformance`, through the virtual node. It uses the clusters of this folder. The suite and its images take
 * longer to build than to run, so it is part of `make test-long`.
 */
import { mkdirSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { binaries } from '../../../lab/binaries.ts';
import { OFFLOADED } from '../../../lab/conformance/bed.ts';
import { runSpecs } from '../../../lab/conformance/suite.ts';
import type { Spec } from '../../../lab/conformance/specs.ts';
import { TENTH } from '../../../lab/conformance/tenth.ts';
import { conformanceImages } from '../../../lab/images-conformance.ts';
import { Peers } from '../../support/e2e/peers.ts';
import { short } from '../../support/long.ts';

const NAMESPACE = 'conformance';
/** Jest would add a stack to each line. */
const progress = (line: string): void => void process.stderr.write(`${line}\n`);

const isLong = short("specs of Kubernetes' own suite", { short: 0, long: TENTH.length }) > 0;

(isLong ? describe : describe.skip)("a tenth of Kubernetes' own suite", () => {
  let peers: Peers;
  let specs: ReadonlyMap<string, Spec>;

  beforeAll(async () => {
    const programs = await binaries(progress, ['e2e', 'ginkgo', 'kubectl']);
    const images = await conformanceImages(progress);
    peers = await Peers.open(OFFLOADED);
    for (const cluster of peers.lab.clusters) await cluster.loadImage(images);
    await peers.peer(NAMESPACE, {
      sharing: { sharePercent: 100 },
      // The suite takes a node with a taint for one that cannot be used.
      acceptance: { taintEffect: 'None' },
    });
    await peers.ask('kubectl cordon rome-1');
    const directory = peers.file('suite');
    mkdirSync(directory);
    const ran = await runSpecs(
      {
        programs,
        directory,
        kubeconfig: peers.lab.cluster('rome').kubeconfig,
        signal: new AbortController().signal,
        progress,
      },
      { title: 'tenth', processes: 6, focus: TENTH, timeoutMinutes: 15 },
    );
    specs = new Map(ran.map((spec) => [spec.name, spec]));
  }, 1_500_000);

  afterAll(async () => {
    await peers?.ask('kubectl uncordon rome-1');
    await peers?.close();
  }, 200_000);

  test.each(TENTH)('%s', (name) => {
    expect(specs.get(name)).toMatchObject({ state: 'passed', message: '' });
  });
});
