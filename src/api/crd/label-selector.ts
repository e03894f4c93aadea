import type { LabelRequirement, LabelSelector } from '../label-selector.ts';
import { LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN } from '../limits.ts';
import { labels } from './common.ts';
import type { Schema, SchemaOf } from './schema.ts';

/**
 * As metav1.LabelSelector. Keys and values are written into pods' node affinity, and a pod with a key that none can be is
 * refused, wherever it is to run.
 */
export const labelSelector = (description: string): Schema => ({
  type: 'object',
  description,
  properties: {
    matchLabels: {
      ...labels('Labels that must all be there with these values.', 32),
      'x-kubernetes-validations': [
        {
          rule: `self.all(key, key.matches(r'${LABEL_KEY_PATTERN}'))`,
          message: 'a key is no name of a label',
          reason: 'FieldValueInvalid',
        },
      ],
    },
    matchExpressions: {
      type: 'array',
      description: 'Requirements that must all hold.',
      maxItems: 32,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        description: 'One requirement.',
        required: ['key', 'operator'],
        properties: {
          key: {
            type: 'string',
            description: 'Key of the label.',
            minLength: 1,
            maxLength: 317,
            pattern: LABEL_KEY_PATTERN,
          },
          operator: {
            type: 'string',
            description: 'How the label relates to the values.',
            enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'],
          },
          values: {
            type: 'array',
            description: 'With In and NotIn: at least one. With Exists and DoesNotExist: none.',
            maxItems: 64,
            'x-kubernetes-list-type': 'atomic',
            items: {
              type: 'string',
              description: 'Value of the label.',
              maxLength: 63,
              pattern: LABEL_VALUE_PATTERN,
            },
          },
        } satisfies SchemaOf<LabelRequirement>,
        'x-kubernetes-validations': [
          {
            rule: "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
            message: 'In and NotIn need values, Exists and DoesNotExist take none',
            reason: 'FieldValueInvalid',
          },
        ],
      },
    },
  } satisfies SchemaOf<LabelSelector>,
});
