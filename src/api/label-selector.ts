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
