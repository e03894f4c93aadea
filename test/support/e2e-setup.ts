import { downE2eLab, upE2eLab } from './e2e-lab.ts';

/** Jest's globalSetup of the e2e project; an interrupted run removes its lab, too. */
// oxlint-disable-next-line import/no-default-export -- Jest asks for it
export default async function setup(): Promise<void> {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => void downE2eLab().finally(() => process.exit(1)));
  }
  await upE2eLab();
}
