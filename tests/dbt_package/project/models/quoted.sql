{{ config(alias="Über Sicht", refresh_mode='FULL') }}
select customer as "Der Kunde", max(placed) as "Letzte Bestellung" from {{ ref('order_facts') }} group by customer
