import type { Component } from '../lib/lifecycle.ts';
import { Guardian, type GuardianOptions } from '../hosting/guardian/guardian.ts';

/** What keeps the pods of peers whose home is away. Its components start after those of lending. */
export const guardian = (options: GuardianOptions): Component[] => new Guardian(options).components();
