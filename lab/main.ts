/** `npm run lab -- up|status|kubeconfig|load-image|down`. Progress goes to standard error, answers to standard output. */
import { parseArguments, USAGE, type LabCommand } from './arguments.ts';
import { clustersOf, withArchive } from './image-archive.ts';
import { Lab } from './lab.ts';
import { describeLabs } from './status.ts';

const say = (line: string): void => console.error(line);

async function perform(command: LabCommand, signal: AbortSignal): Promise<void> {
  switch (command.verb) {
    case 'help':
      console.log(USAGE.trimEnd());
      break;
    case 'up': {
      const lab = await Lab.up({ ...command.options, signal, progress: say });
      for (const { name, kubeconfig } of lab.clusters) console.log(`${name}\t${kubeconfig}`);
      break;
    }
    case 'status':
      console.log(await describeLabs(command.name));
      break;
    case 'kubeconfig':
      console.log((await Lab.open(command.name)).cluster(command.cluster).kubeconfig);
      break;
    case 'load-image': {
      const { clusters } = await Lab.open(command.name);
      const chosen = clustersOf(clusters, command.clusters);
      await withArchive(command.image, async (archive) => {
        for (const cluster of chosen) {
          await cluster.loadImage(archive, signal);
          say(`${command.image} is on ${cluster.nodes.length} node(s) of ${cluster.name}`);
        }
      });
      break;
    }
    case 'down':
      say(
        (await Lab.down(command.name, { force: command.force, signal, progress: say }))
          ? `lab ${command.name} is gone`
          : `lab ${command.name} was not up`,
      );
      break;
  }
}

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => interruption.abort(new Error(`interrupted by ${name}`)));
}
try {
  await perform(parseArguments(process.argv.slice(2)), interruption.signal);
} catch (error) {
  say(`lab: ${Error.isError(error) ? error.message : String(error)}`);
  process.exitCode = 1;
}
