/**
 * A tenth of `make conformance`, through the virtual node. Only in the long run, since its programs and images take minutes to
 * build; it uses the clusters of this folder.
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

const NAMESPACE = 'conformance';
const isLong = process.env['TRIBUTARY_TEST_LONG'] === '1';
const part = isLong ? describe : describe.skip;

part("a tenth of Kubernetes' own suite", () => {
  let peers: Peers;
  let specs: ReadonlyMap<string, Spec>;

  beforeAll(async () => {
    process.stderr.write(`long: specs of Kubernetes' own suite: ${TENTH.length} instead of 0\n`);
    const programs = await binaries(console.error, ['e2e', 'ginkgo', 'kubectl']);
    const images = await conformanceImages(console.error);
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
        progress: console.error,
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
