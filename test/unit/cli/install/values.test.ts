import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';

import { valuesOfOptions, valuesOfYaml, wholeValues } from '../../../../src/cli/install/values.ts';
import { valuesAfter } from '../../../../src/cli/install/versions.ts';

const root = join(import.meta.dirname, '..', '..', '..', '..');

describe('the name of a cluster', () => {
  const { properties } = JSON.parse(readFileSync(join(root, 'deploy/chart/values.schema.json'), 'utf8')) as {
    properties: { clusterName: { pattern: string } };
  };
  const inSchema = new RegExp(properties.clusterName.pattern, 'u');

  test.each(['rome', 'rome-2', '7', 'r'.repeat(63)])('%s', (name) => {
    expect(valuesOfYaml(`clusterName: "${name}"`, 'f')).toEqual({ clusterName: name });
    expect(inSchema.test(name)).toBe(true);
  });

  test.each(['Rome', 'Rome City!', 'rome_2', 'rome.it', '-rome', 'rome-', '', 'r'.repeat(64)])(
    '"%s" is refused, by the chart too',
    (name) => {
      expect(() => valuesOfYaml(`clusterName: "${name}"`, 'f')).toThrow(
        `f: clusterName: "${name}" is not a DNS label`,
      );
      expect(inSchema.test(name)).toBe(false);
    },
  );

  test('that an older version has taken can be replaced by an upgrade', () => {
    const installed = { version: '0.1.0', values: { clusterName: 'Rome City!', image: 'tributary:1' } };
    expect(() => valuesAfter(installed, {})).toThrow(
      'ConfigMap tributary-system/tributary-installation: clusterName: "Rome City!" is not a DNS label',
    );
    const clusterName = 'rome-city';
    expect(valuesAfter(installed, { clusterName })).toEqual({ clusterName, image: 'tributary:1' });
  });
});

test('what a role refuses is told under the name of the value', () => {
  const values = { podCidrs: ['10.0.0.0/8'], externalCidr: '10.70.0.0/20' };
  expect(() => wholeValues(values)).toThrow(
    '--external-cidr 10.70.0.0/20 overlaps with 10.0.0.0/8; name a range that nothing uses',
  );
  expect(() => wholeValues({ podCidrs: ['10.0.0.0/99'] })).toThrow(
    '--pod-cidrs: "10.0.0.0/99" is not a CIDR',
  );
});

describe('further arguments of a role', () => {
  const chosenBy = (line: string): ReturnType<typeof valuesOfOptions> =>
    valuesOfOptions({ 'cluster-args': line });

  test('are taken as options of that role', () => {
    const args = ['--credential-seconds', '7200', '--drain-seconds=60'];
    expect(wholeValues(chosenBy(args.join())).clusterArgs).toEqual(args);
    expect(() => wholeValues(chosenBy('--credential-seconds=5'))).toThrow(
      '--credential-seconds must be a number of seconds from 600 to a year, not "5"',
    );
  });

  test.each([
    [
      '[--credential-seconds, "7200"]',
      '--cluster-args: "[--credential-seconds" is no option of role cluster; what it has is shown by: tributary run cluster --help',
    ],
    [
      '--credential-second,7200',
      '--cluster-args: "--credential-second" is no option of role cluster; did you mean --credential-seconds?',
    ],
    ['--probe-seconds,2', '--cluster-args: "--probe-seconds" is no option of role cluster; '],
    ['--credential-seconds', '--cluster-args: --credential-seconds needs a value'],
    [
      '--credential-seconds,--drain-seconds,60',
      '--cluster-args: --credential-seconds needs a value; "--drain-seconds" follows it',
    ],
    ['7200', '--cluster-args: "7200" is no option of role cluster; '],
    ['--constructor,1', '--cluster-args: "--constructor" is no option of role cluster; '],
  ])('%s is refused', (line, message) => {
    expect(() => wholeValues(chosenBy(line))).toThrow(message);
  });

  test('one process takes those of every role', () => {
    expect(() => wholeValues({ oneProcess: true, ...chosenBy('--probe-seconds,2') })).not.toThrow();
    expect(() => wholeValues({ nodeArgs: ['--probe-seconds', '2'] })).toThrow(
      '--node-args: "--probe-seconds" is no option of role node; ',
    );
  });
});

test('a mistyped name of a value is told with the one that was meant', () => {
  expect(() => valuesOfYaml('oneProces: true', 'f')).toThrow(
    /^f: oneProces is no value; did you mean oneProcess\?$/,
  );
  expect(() => valuesOfYaml('Agents: shared', 'f')).toThrow('did you mean agents?');
  expect(() => valuesOfYaml('bogus: 1', 'f')).toThrow('bogus is no value; there are image, clusterName, ');
});
