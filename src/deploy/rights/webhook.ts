import { GUESTS_CONFIGURATION, WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE } from '../../api/admission.ts';
import type { Right } from '../../api/rbac.ts';

/** For the whole cluster. */
export const webhookRights = (systemNamespace: string): readonly Right[] => [
  {
    resource: 'mutatingwebhookconfigurations.admissionregistration.k8s.io',
    names: [WEBHOOK_CONFIGURATION, GUESTS_CONFIGURATION],
    verbs: ['list', 'watch', 'update', 'create', 'patch'],
    why: 'says of which namespaces pods come to our webhook; puts it back when somebody changes or deletes it (create holds for these names only, with server-side apply)',
  },
  {
    resource: 'validatingwebhookconfigurations.admissionregistration.k8s.io',
    names: [GUESTS_CONFIGURATION],
    verbs: ['list', 'watch', 'update', 'create', 'patch'],
    why: 'likewise, for what a peer may use over all its namespaces',
  },
  {
    resource: 'namespaces',
    names: [systemNamespace],
    verbs: ['get'],
    why: 'a webhook configuration that is made anew belongs to it and goes with it',
  },
];

/** In the project's own namespace. */
export const WEBHOOK_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    names: [WEBHOOK_SERVICE],
    verbs: ['get', 'update'],
    why: 'the certificates of the webhook and of those who sign them, renewed by the program',
  },
  { resource: 'secrets', verbs: ['create'], why: 'they are made at the first start' },
];
