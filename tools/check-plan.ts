/** What `npm run check` looks at: all of it, or what has changed since the branch began. */
import { execFileSync } from 'node:child_process';
import { isAbsolute, join } from 'node:path';

/** One tool, run in parallel with the others. */
export interface CheckPart {
  readonly name: string;
  /** A program of node_modules/.bin, or a script of ours. */
  readonly script: string;
  readonly args: readonly string[];
}

const bin = (name: string): string => `node_modules/.bin/${name}`;

/** The tools, and what they read besides the code. A change of these files can make any file wrong. */
const RULES =
  /^(?:\.oxlintrc\.json|\.prettierrc\.json|\.prettierignore|\.editorconfig|(?:web\/)?tsconfig(?:\.\w+)?\.json|package-lock\.json)$/;
const CODE = /\.(?:tsx?|mjs|js)$/;

const generated: CheckPart = {
  name: 'generated files',
  script: 'tools/generate.ts',
  args: ['--check'],
};

const rooms: CheckPart = { name: 'rooms', script: 'tools/rooms.ts', args: ['--check'] };

/** The dashboard's page: browsers know other names than Node.js. */
const page: CheckPart = { name: 'types of the page', script: bin('tsc'), args: ['-p', 'web'] };

/** No results of earlier runs are used. */
export const WHOLE: readonly CheckPart[] = [
  { name: 'format', script: bin('prettier'), args: ['--check', '--log-level', 'warn', '.'] },
  { name: 'lint', script: bin('oxlint'), args: ['--type-aware', '--deny-warnings'] },
  { name: 'types', script: bin('tsc'), args: ['-p', '.'] },
  page,
  generated,
  rooms,
];

/** tsc compares the files with those of the run that wrote it, and checks the changed ones and their dependents. */
const BUILD_INFO = 'node_modules/.cache/tributary/check.tsbuildinfo';

/**
 * The parts for these changed files, or all parts if the rules have changed. Types, generated files and imports
 * between rooms are checked everywhere, since a change in one file can break another one.
 */
export function partsFor(changed: readonly string[]): readonly CheckPart[] {
  if (changed.some((path) => RULES.test(path))) return WHOLE;
  const code = changed.filter((path) => CODE.test(path));
  const parts: CheckPart[] = [
    {
      name: 'types',
      script: bin('tsc'),
      args: ['-p', '.', '--incremental', '--tsBuildInfoFile', BUILD_INFO],
    },
    page,
    generated,
    rooms,
  ];
  if (code.length > 0) {
    const args = ['--type-aware', '--deny-warnings', '--no-error-on-unmatched-pattern', '--', ...code];
    parts.unshift({ name: 'lint', script: bin('oxlint'), args });
  }
  if (changed.length > 0) {
    const args = ['--check', '--log-level', 'warn', '--ignore-unknown', '--', ...changed];
    parts.unshift({ name: 'format', script: bin('prettier'), args });
  }
  return parts;
}

/** Files that have changed since this branch began, including new ones; undefined if git cannot tell. */
export function changedFiles(root: string): readonly string[] | undefined {
  if (!isAbsolute(root)) throw new Error('a whole path is needed');
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const attempt = (...args: string[]): string | undefined => {
    try {
      return git(...args).trim();
    } catch {
      return undefined;
    }
  };
  const top = attempt('rev-parse', '--show-toplevel');
  if (top === undefined || join(top) !== join(root)) return undefined;
  const trunk = ['origin/main', 'main'].find((ref) => attempt('rev-parse', '--verify', '--quiet', ref));
  const base = trunk === undefined ? undefined : attempt('merge-base', 'HEAD', trunk);
  if (base === undefined) return undefined;
  const named = [
    git('diff', '--name-only', '-z', '--no-renames', '--diff-filter=d', base, '--'),
    git('ls-files', '-z', '--others', '--exclude-standard'),
  ].flatMap((text) => text.split('\0').filter((path) => path !== ''));
  return [...new Set(named)].toSorted();
}
