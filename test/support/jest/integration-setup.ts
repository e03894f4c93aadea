import { useBuiltProgram } from '../../../lab/own-program.ts';

/** Jest's globalSetup of the integration project. */
// oxlint-disable-next-line import/no-default-export -- Jest asks for it
export default async function setup(): Promise<void> {
  await useBuiltProgram();
}
