/** As metav1.LabelSelector: all of it must hold; empty selects everything. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: LabelRequirement[];
}

export interface LabelRequirement {
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  values?: string[];
}

type Labels = Readonly<Record<string, string>>;

/** Pure; as apimachinery's labels.Selector: NotIn and DoesNotExist also hold where the label is absent. */
export function matchesSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Labels,
): boolean {
  const own = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(matchLabels).every(([key, value]) => own(key) === value) &&
    matchExpressions.every((requirement) => holds(requirement, own(requirement.key)))
  );
}

function holds({ operator, values = [] }: LabelRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return operator satisfies never;
  }
}

const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$/u;
const LABEL_VALUE = /^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$/u;

/** Reads what `kubectl -l` takes, except sets. `wrong` is told each part that is none of it. */
export function readSelector(text: string, wrong: (part: string) => void): LabelSelector {
  const matchExpressions = text.split(',').map((part) => {
    const [, not = '', key = '', operator = '', value = ''] =
      /^(!?)([^=!]*)(!?=?=?)(.*)$/u.exec(part.trim()) ?? [];
    const isValid =
      LABEL_KEY.test(key) &&
      LABEL_VALUE.test(value) &&
      (operator === '') === (value === '') &&
      !(not && operator);
    if (!isValid) wrong(part);
    if (operator === '') return { key, operator: not ? ('DoesNotExist' as const) : ('Exists' as const) };
    return { key, operator: operator === '!=' ? ('NotIn' as const) : ('In' as const), values: [value] };
  });
  return { matchExpressions };
}
