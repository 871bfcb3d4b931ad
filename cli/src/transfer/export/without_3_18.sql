-- Removes what `schema_3_18.sql` has added.
DROP TABLE skill_aliases;
DROP TABLE skill_version_tags;
DROP TABLE skill_tags;
DROP TABLE skill_versions;
DROP TABLE skills;
DROP TABLE issue_categories;
DROP INDEX index_issues_experiment_last_seen;
DROP INDEX index_issues_experiment_updated;
ALTER TABLE issues DROP COLUMN last_seen_timestamp;
ALTER TABLE issues DROP COLUMN last_updated_by;
ALTER TABLE issues DROP COLUMN metadata;
UPDATE alembic_version SET version_num = 'dc11669786a5';
