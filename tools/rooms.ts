/**
 * The rooms of src: how large they are, who imports whom, which files import each other in a circle.
 *
 * Usage: node tools/rooms.ts [--check | --walk FILE]
 *   --check prints only what is wrong: imports that the table in tools/room-rules.ts does not permit, circles, and imports
 *   across the border of programs that judge ours from outside.
 *   --walk counts the files that FILE needs at run time, except lib, api and kube.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { circlesOf, type Import, importsIn, reachedFrom } from './import-graph.ts';
import { arrowsOf, crossings, flowchart, roomOf, sizesOf, wrongs } from './room-rules.ts';

const root = join(import.meta.dirname, '..');
const textsOf = (...patterns: string[]): Map<string, string> =>
  new Map(
    globSync(patterns, { cwd: root })
      .toSorted()
      .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
  );
const importsOf = (texts: ReadonlyMap<string, string>): Import[] =>
  [...texts].flatMap(([path, text]) => importsIn(path, text));
const texts = textsOf('src/**/*.ts');
const imports = importsOf(texts);
const lineCounts = new Map([...texts].map(([path, text]) => [path, text.split('\n').length - 1]));

function walk(start: string): void {
  if (!texts.has(start)) throw new Error(`${start} is not a file of src`);
  const values = imports.filter(({ isType }) => !isType);
  const met = reachedFrom(start, values, (path) => ['lib', 'api', 'kube'].includes(roomOf(path)));
  const sum = met.reduce((total, path) => total + (lineCounts.get(path) ?? 0), 0);
  console.log(met.join('\n'));
  console.log(`${met.length} files, ${sum} lines`);
}

function check(): void {
  const outside = importsOf(textsOf('{faults,lab,bench,tools}/**/*.ts'));
  const found = [...wrongs(imports), ...crossings([...imports, ...outside])];
  for (const line of found) console.error(line);
  process.exitCode = found.length > 0 ? 1 : 0;
}

function show(): void {
  console.log(flowchart(arrowsOf(imports)));
  const circles = circlesOf(imports);
  console.log(`\ncircles of imports: ${circles.length}`);
  for (const circle of circles) console.log(`  ${circle.join(', ')}`);
  console.log(`\n${'room'.padEnd(14)}files  lines  median`);
  for (const { room, files, lines, median } of sizesOf(lineCounts))
    console.log(
      `${room.padEnd(14)}${String(files).padStart(5)}${String(lines).padStart(7)}${String(median).padStart(8)}`,
    );
  check();
}

const [option, file, ...rest] = process.argv.slice(2);
if (option === undefined) show();
else if (option === '--check' && file === undefined) check();
else if (option === '--walk' && file !== undefined && rest.length === 0) walk(file);
else throw new Error('usage: node tools/rooms.ts [--check | --walk FILE]');
