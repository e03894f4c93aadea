import { useBuiltProgram } from '../../../lab/own-program.ts';
import { downE2eLabs, holdE2eLabs } from '../e2e/lab.ts';

/** Jest's globalSetup of the e2e project: nothing of an earlier run is up; an interrupted run removes its lab, too. */
// oxlint-disable-next-line import/no-default-export -- Jest asks for it
export default async function setup(): Promise<void> {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => void downE2eLabs().finally(() => process.exit(1)));
  }
  await holdE2eLabs();
  await downE2eLabs();
  await useBuiltProgram();
}
