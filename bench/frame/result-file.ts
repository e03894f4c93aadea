import { join } from 'node:path';

/** Written by bench/store.ts. */
export const RESULT_FILE: string = join(import.meta.dirname, '..', 'result.json');
