/** docs/benchmarks.md and its plots, from the last runs of the benchmarks. */
import { documentsOf, PLOT_FOLDER } from '../../bench/frame/document.ts';
import { storedParts } from '../../bench/frame/stored.ts';

export function benchmarkFiles(): Record<string, string> {
  const { markdown, plots } = documentsOf(storedParts());
  return {
    'docs/benchmarks.md': markdown,
    ...Object.fromEntries(Array.from(plots, ([name, svg]) => [`docs/${PLOT_FOLDER}/${name}`, svg])),
  };
}
