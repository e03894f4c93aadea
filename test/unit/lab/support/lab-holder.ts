/** Another program that works with a lab: `node lab-holder.ts NAME [wait]`; it holds the lab until its input ends, whatever interrupts it. */
import { holdLab } from '../../../../lab/holder.ts';

const [name = '', mode] = process.argv.slice(2);
process.on('SIGINT', () => console.log('interrupted'));
try {
  const progress = (line: string): void => console.log(`progress: ${line}`);
  const hold = await holdLab(name, { wait: mode === 'wait', progress });
  console.log('held');
  for await (const _ of process.stdin);
  await hold.release();
} catch (error) {
  console.log(`refused: ${Error.isError(error) ? error.message : String(error)}`);
}
