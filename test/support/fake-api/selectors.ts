/** Label selectors as the API server reads them: `a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b)`. */
export function matchesLabels(selector: string | null, labels: Record<string, string> = {}): boolean {
  if (selector === null || selector === '') return true;
  return splitTerms(selector).every((term) => matchesTerm(term, labels));
}

function splitTerms(selector: string): string[] {
  return selector.split(/,(?![^(]*\))/).map((term) => term.trim());
}

function matchesTerm(term: string, labels: Record<string, string>): boolean {
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const among = new Set(list.split(',').map((value) => value.trim()));
    const value = labels[key];
    return operator === 'in' ? value !== undefined && among.has(value) : !among.has(value ?? '\0');
  }
  const pair = /^([^!=]+)(!=|==|=)(.*)$/.exec(term);
  if (pair !== null) {
    const [, key = '', operator, value] = pair;
    return operator === '!=' ? labels[key.trim()] !== value : labels[key.trim()] === value;
  }
  return term.startsWith('!') ? !(term.slice(1) in labels) : term in labels;
}

/** Field selectors: `path=value` and `path!=value` over any path of strings. */
export function matchesFields(selector: string | null, object: object): boolean {
  if (selector === null || selector === '') return true;
  return selector.split(',').every((term) => {
    const [, path = '', operator, wanted] = /^([^!=]+)(!=|==|=)(.*)$/.exec(term) ?? [];
    let value: unknown = object;
    for (const key of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[key];
    return ((typeof value === 'string' ? value : '') === wanted) === (operator !== '!=');
  });
}
