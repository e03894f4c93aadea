import type { LabelRequirement, LabelSelector } from '../label-selector.ts';
import { LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN } from '../limits.ts';
import { labels } from './common.ts';
import { choice, listOf, objectOf, type Schema, type Validation } from './schema.ts';

const KEYS: Validation = {
  rule: `self.all(key, key.matches(r'${LABEL_KEY_PATTERN}'))`,
  message: 'a key is no name of a label',
  reason: 'FieldValueInvalid',
};
const VALUES: Validation = {
  rule: "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
  message: 'In and NotIn need values, Exists and DoesNotExist take none',
  reason: 'FieldValueInvalid',
};

const selector = (description: string, isChecked: boolean): Schema =>
  objectOf<LabelSelector>(description, [], {
    matchLabels: {
      ...labels('Labels that must all be there with these values.', 32),
      ...(isChecked && { 'x-kubernetes-validations': [KEYS] }),
    },
    matchExpressions: listOf('Requirements that must all hold.', 32, {
      ...objectOf<LabelRequirement>('One requirement.', ['key', 'operator'], {
        key: {
          type: 'string',
          description: 'Key of the label.',
          minLength: 1,
          maxLength: 317,
          pattern: LABEL_KEY_PATTERN,
        },
        operator: choice('How the label relates to the values.', ['In', 'NotIn', 'Exists', 'DoesNotExist']),
        values: listOf('With In and NotIn: at least one. With Exists and DoesNotExist: none.', 64, {
          type: 'string',
          description: 'Value of the label.',
          maxLength: 63,
          pattern: LABEL_VALUE_PATTERN,
        }),
      }),
      ...(isChecked && { 'x-kubernetes-validations': [VALUES] }),
    }),
  });

/**
 * As metav1.LabelSelector. Keys and values are written into pods' node affinity, and a pod with a key that none can be is
 * refused, wherever it is to run.
 */
export const labelSelector = (description: string): Schema => selector(description, true);

/** The same without rules, whose cost an API server would not bear in long lists: who uses the selector has to check it. */
export const uncheckedSelector = (description: string): Schema => selector(description, false);
